"""What a client is told of the size of its request: remembered by request, copied into its answer, and forgotten."""

import json

import pytest
from engine_requests import attempted

from ctx_hooks.engine.decision import Compressed, NotRetried, ShownAgain, Untouched
from ctx_hooks.litellm_compat import Call, with_request_id
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.target import Target
from ctx_hooks.serving.reported_usage import ReportedUsage
from ctx_hooks.serving.running import Running
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.units import ProviderTokens

WINDOW = Window(ProviderTokens(8_000), "model_info")
ORIGINAL = Policy(report_usage="original")
CUT = Compressed({}, None, ())
START = (
    b"event: message_start\n"
    b'data: {"type": "message_start", "message": {"usage": {"input_tokens": 100, "output_tokens": 1}}}\n\n'
)
REST = b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0}\n\n'


FIELDS = with_request_id({})
REQUEST_ID = Call(FIELDS).request_id


def target(policy=ORIGINAL, request_id=REQUEST_ID):
    return Target("model", "id:model", WINDOW, policy, request_id)


def attempt(received, sent, **fields):
    return attempted(WINDOW.tokens, sent, received_tokens=received, **fields)


def told(usage, fields=FIELDS, billed=100):
    answer = usage.whole(fields, {"usage": {"prompt_tokens": billed}})
    return answer["usage"]["prompt_tokens"]


async def streamed(usage, chunks):
    async def stream():
        for chunk in chunks:
            yield chunk

    return [chunk async for chunk in usage.streamed(FIELDS, stream())]


@pytest.fixture
def usage():
    return ReportedUsage(Running())


def test_an_answer_states_what_was_received_in_the_tokens_that_were_billed(usage):
    usage.note(target(), CUT, attempt(900, 300))
    assert told(usage, billed=120) == 360


def test_what_was_cut_for_a_deployment_that_failed_is_not_told_of_the_next(usage):
    usage.note(target(), CUT, attempt(900, 300))
    usage.failed(REQUEST_ID, "id:model")
    assert told(usage) == 100


def test_a_fallback_whose_policy_reports_the_bill_has_it_reported(usage):
    usage.note(target(), CUT, attempt(900, 300))
    usage.note(target(Policy()), CUT, attempt(900, 300))
    assert told(usage) == 100


def test_what_was_told_is_forgotten(usage):
    usage.note(target(), CUT, attempt(900, 300))
    assert (told(usage), told(usage)) == (300, 100)


@pytest.mark.parametrize(("to", "decision", "sent"), [
    (target(Policy()), CUT, attempt(900, 300)), (target(request_id=""), CUT, attempt(900, 300)),
    (target(), Untouched(reason="fits"), attempt(900, 300)), (target(), CUT, attempt(None, None)),
    (target(), CUT, attempt(900, 0)), (target(), CUT, attempt(300, 900)),
    (target(), CUT, attempt(900, 300, counts_all=False)), (target(), CUT, attempt(900, 300, stored=True)),
    (target(), CUT, None),
], ids=["off", "no-id", "untouched", "uncounted", "nothing-sent", "larger", "in-part", "stored", "unknown"])  # fmt: skip
def test_where_off_or_uncut_or_not_known_the_answer_is_the_very_object(to, decision, sent, usage):
    usage.note(to, decision, sent)
    answer = {"usage": {"prompt_tokens": 100}}
    assert usage.whole(FIELDS if to.request_id else {}, answer) is answer


async def test_without_a_cut_a_streams_chunks_are_the_very_objects(usage):
    chunks = [b"data: half a li", b"ne\n\n", {"usage": {"prompt_tokens": 100}}]
    assert [id(c) for c in await streamed(usage, chunks)] == [id(c) for c in chunks]


def test_the_last_attempt_counts(usage):
    usage.note(target(), CUT, attempt(900, 300))
    usage.note(target(), CUT, attempt(900, 450))
    usage.note(target(), NotRetried(reason="spent"), attempt(900, 90))
    usage.note(target(), ShownAgain(), attempt(900, 450))
    assert told(usage) == 200


def test_a_deployment_that_takes_the_request_whole_bills_the_originals_size(usage):
    usage.note(target(), CUT, attempt(900, 300))
    usage.note(target(), Untouched(reason="fits"), attempt(900, 900))
    assert told(usage) == 100


def test_what_was_cut_before_the_router_chose_counts_for_each_attempt(usage):
    usage.note(target(), CUT, attempt(900, 300))
    usage.note_fitted_before_choice(REQUEST_ID)
    usage.note(target(), CUT, attempt(300, 200))
    usage.note(target(), CUT, attempt(300, 100))
    assert told(usage) == 900
    usage.note(target(), CUT, attempt(900, 300))
    usage.note_fitted_before_choice(REQUEST_ID)
    assert told(usage) == 300


@pytest.mark.parametrize("cut", range(1, len(START + REST)))
async def test_wherever_the_network_cuts_a_stream_its_events_are_the_same(cut, usage):
    usage.note(target(), CUT, attempt(900, 300))
    whole = START + REST
    found = b"".join(await streamed(usage, [whole[:cut], whole[cut:]]))
    first, data, *rest = found.splitlines(keepends=True)
    assert first == b"event: message_start\n"
    assert json.loads(data[6:])["message"]["usage"] == {"input_tokens": 300, "output_tokens": 1}
    assert b"".join(rest) == b"\n" + REST


async def test_no_event_waits_for_the_chunk_behind_it(usage):
    usage.note(target(), CUT, attempt(900, 300))
    assert len(await streamed(usage, [START, REST + b"data: {", b"}\n\n"])) == 3


async def test_a_stream_that_ends_inside_a_line_loses_nothing(usage):
    usage.note(target(), CUT, attempt(900, 300))
    assert await streamed(usage, [REST + b"data: half"]) == [REST, b"data: half"]


async def test_what_cannot_be_read_goes_on_unchanged(usage, caplog):
    broken = b'data: {"usage": \n\n'
    usage.note(target(), CUT, attempt(900, 300))
    assert await streamed(usage, [broken, REST]) == [broken, REST]
    assert "leaves the usage of an answer as it was billed" in caplog.text


async def test_a_stream_that_the_client_leaves_is_forgotten(usage):
    usage.note(target(), CUT, attempt(900, 300))

    async def stream():
        yield START
        yield REST

    left = usage.streamed(FIELDS, stream())
    await anext(left)
    await left.aclose()
    assert told(usage) == 100
