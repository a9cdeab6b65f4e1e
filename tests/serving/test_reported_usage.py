"""What a client is told of the size of its request: remembered by request, copied into its answer, and forgotten."""

import json

import pytest
from engine_requests import attempted

from ctx_hooks.engine.decision import Compressed, NotRetried, ShownAgain, Untouched
from ctx_hooks.litellm_compat.identity import with_request_id
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.sizes import Uncounted
from ctx_hooks.request.target import Target
from ctx_hooks.serving import reported_usage
from ctx_hooks.serving.running import RequestState
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


def target(policy=ORIGINAL):
    return Target("model", "id:model", WINDOW, policy, "request", deployment_id="id")


def attempt(received, sent, **fields):
    return attempted(WINDOW.tokens, sent, received_tokens=received, **fields)


def told(state, fields=FIELDS, billed=100):
    answer = reported_usage.whole(state, fields, {"usage": {"prompt_tokens": billed}})
    return answer["usage"]["prompt_tokens"]


async def streamed(state, chunks):
    async def stream():
        for chunk in chunks:
            yield chunk

    return [chunk async for chunk in reported_usage.streamed(state, stream())]


@pytest.fixture
def state():
    return RequestState()


@pytest.fixture
def cut(state):
    """The state of a request of which a third was sent."""
    reported_usage.note(state, target(), CUT, attempt(900, 300))
    return state


def test_an_answer_states_what_was_received_in_the_tokens_that_were_billed(cut):
    assert told(cut, billed=120) == 360


def test_what_was_cut_for_a_deployment_that_failed_is_not_told_of_the_next(cut):
    reported_usage.note_failed(cut, target().name)
    assert told(cut) == 100


@pytest.mark.parametrize(("policy", "decision", "sent"), [
    (Policy(), CUT, 300), (ORIGINAL, Untouched(reason="fits"), 900),
], ids=["whose policy reports the bill", "that takes the request whole"])  # fmt: skip
def test_a_fallback_has_its_bill_reported(policy, decision, sent, cut):
    reported_usage.note(cut, target(policy), decision, attempt(900, sent))
    assert told(cut) == 100


def test_what_was_told_is_forgotten(cut):
    assert (told(cut), told(cut)) == (300, 100)


@pytest.mark.parametrize(("to", "decision", "sent"), [
    (target(Policy()), CUT, attempt(900, 300)),
    (target(), Untouched(reason="fits"), attempt(900, 300)), (target(), CUT, attempt(None, None)),
    (target(), CUT, attempt(900, 0)), (target(), CUT, attempt(300, 900)),
    (target(), CUT, attempt(900, 300, uncounted=Uncounted(holds_any=True))), (target(), CUT, attempt(900, 300, stored=True)),
    (target(), CUT, None),
], ids=["off", "untouched", "uncounted", "nothing-sent", "larger", "in-part", "stored", "unknown"])  # fmt: skip
def test_where_off_or_uncut_or_not_known_the_answer_is_the_very_object(to, decision, sent, state):
    reported_usage.note(state, to, decision, sent)
    answer = {"usage": {"prompt_tokens": 100}}
    assert reported_usage.whole(state, FIELDS, answer) is answer


async def test_without_a_cut_a_streams_chunks_are_the_very_objects(state):
    chunks = [b"data: half a li", b"ne\n\n", {"usage": {"prompt_tokens": 100}}]
    assert [id(c) for c in await streamed(state, chunks)] == [id(c) for c in chunks]


def test_the_last_attempt_counts(cut):
    reported_usage.note(cut, target(), CUT, attempt(900, 450))
    reported_usage.note(cut, target(), NotRetried(reason="spent"), attempt(900, 90))
    reported_usage.note(cut, target(), ShownAgain(), attempt(900, 450))
    assert told(cut) == 200


def test_what_was_cut_before_the_router_chose_counts_for_each_attempt(cut):
    reported_usage.note_fitted_before_choice(cut)
    reported_usage.note(cut, target(), CUT, attempt(300, 200))
    reported_usage.note(cut, target(), CUT, attempt(300, 100))
    assert told(cut) == 900
    reported_usage.note(cut, target(), CUT, attempt(900, 300))
    reported_usage.note_fitted_before_choice(cut)
    assert told(cut) == 300


@pytest.mark.parametrize("at", range(1, len(START + REST)))
async def test_wherever_the_network_cuts_a_stream_its_events_are_the_same(at, cut):
    whole = START + REST
    found = b"".join(await streamed(cut, [whole[:at], whole[at:]]))
    first, data, *rest = found.splitlines(keepends=True)
    assert first == b"event: message_start\n"
    assert json.loads(data[6:])["message"]["usage"] == {"input_tokens": 300, "output_tokens": 1}
    assert b"".join(rest) == b"\n" + REST


async def test_no_event_waits_for_the_chunk_behind_it(cut):
    assert len(await streamed(cut, [START, REST + b"data: {", b"}\n\n"])) == 3


async def test_a_stream_that_ends_inside_a_line_loses_nothing(cut):
    assert await streamed(cut, [REST + b"data: half"]) == [REST, b"data: half"]


async def test_what_cannot_be_read_goes_on_unchanged(cut, caplog):
    broken = b'data: {"usage": \n\n'
    assert await streamed(cut, [broken, REST]) == [broken, REST]
    assert "leaves the usage of an answer as it was billed" in caplog.text


async def test_a_stream_that_the_client_leaves_is_forgotten(cut):

    async def stream():
        yield START
        yield REST

    left = reported_usage.streamed(cut, stream())
    await anext(left)
    await left.aclose()
    assert told(cut) == 100
