"""The hidden tool over chat, messages and Responses, streamed and not, with OpenAI's and Anthropic's behind each."""

from __future__ import annotations

import json
import os
import re
from itertools import pairwise

import pytest
from configurations import GENERAL, deployment
from proxies import Proxy
from retrieving import (
    CLIENTS,
    FACTS,
    HALF,
    HANDLES,
    HELD,
    LARGE,
    LOOKING,
    NOT_AVAILABLE,
    OTHER_HALF,
    THOUGHT,
    TOOL,
    UNKNOWN,
    UNREADABLE,
    over,
    plugin,
    script,
    total_tokens,
    user,
)

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, sign
from ctx_hooks.testing.streams import OUTPUT_TOKENS

ROUNDS = 3
SMALL = 3_000
KINDS = {"chat": "openai/served", "claude": "anthropic/claude-served"}
WINDOWS = {"small": SMALL, "claude-small": SMALL}
ONCE = user(f"once handle {HANDLES[0]}")
ALLOWED = {"ctx_hooks": {"defaults": {"retrieval": True}}}


@pytest.fixture(scope="module")
def model():
    with FakeProvider(ProviderSettings(window_tokens=1_000_000, windows=WINDOWS), script) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plugin")


@pytest.fixture(scope="module")
def retrieving(model, folder):
    groups = [(f"{name}{memory}", kind) for name, kind in KINDS.items() for memory in ("", "-forgetful")]
    listed = [deployment(model.url, group, kind) for group, kind in groups]
    small = [
        deployment(model.url, f"{client.group}-small-{i}", KINDS[client.group].replace("served", "small"))
        for i, client in enumerate(CLIENTS)
    ]
    plugin_settings, environment = plugin(folder)
    config = {
        "model_list": [*listed, *small],
        "litellm_settings": plugin_settings,
        "callback_settings": ALLOWED,
        "general_settings": GENERAL,
    }
    with Proxy(config, environment) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh(model):
    model.reset(holds=False)


def items_of(request):
    return request["payload"].get("messages") or request["payload"]["input"]


@pytest.fixture
def gate(retrieving, folder):  # noqa: ARG001 - it has made the pipe
    """The pipe that the tool waits at, open for both: then neither end waits for the other to be opened."""
    pipe = os.open(folder / "gate", os.O_RDWR)
    yield lambda: os.write(pipe, b".")
    os.close(pipe)


def hides_all(answer, model):
    """Whether nothing that a client gets names the tool, or an id of a call that is not its own."""
    listed = [*answer.messages, *(b for m in answer.messages for b in m.get("content") or () if isinstance(b, dict))]
    listed += [call for m in answer.messages for call in m.get("tool_calls") or ()]
    ids = {i.get("call_id") or i["id"] for i in listed if i.get("type") in ("tool_use", "function", "function_call")}
    asked = json.dumps([items_of(r) for r in model.requests()])
    hidden = set(re.findall(r'"(?:call_id|tool_use_id|tool_call_id)": "([^"]+)"', asked))
    return TOOL not in answer.raw and not any(name in answer.raw for name in hidden - ids)


def grows(model):
    """Whether each request begins with all that the one before it said, as the provider itself said it."""
    asked = [items_of(request) for request in model.requests()]
    return all(after[: len(before)] == before for before, after in pairwise(asked))


@over(OTHER_HALF)
def test_a_model_that_never_ends_is_stopped_behind_three_rounds(client, retrieving, model):
    """The last request forbids calls; what is called nevertheless is taken out, and the answer ends as any other."""
    answer = client.ask(retrieving, [user(f"always handle {HANDLES[0]}")])
    read = model.requests()
    assert len(read) == 1 + ROUNDS
    assert total_tokens(answer.usage) == sum(r["input_tokens"] + OUTPUT_TOKENS for r in read), "all of them are billed"
    assert answer.text.split() == LOOKING.split() * ROUNDS
    assert answer.stop in ("stop", "end_turn")
    assert hides_all(answer, model)
    last = read[-1]["payload"]["tool_choice"]
    assert last in ("none", {"type": "none"})
    following = client.ask(retrieving, [user(f"always handle {HANDLES[0]}"), *answer.messages, user("plain")])
    assert following.stop in ("stop", "end_turn")


@over(CLIENTS)
def test_the_model_is_told_of_a_handle_that_names_nothing_or_of_arguments_that_are_no_json(client, retrieving, model):
    """A whole answer of Anthropic's cannot hold them: its arguments are an object."""
    word, told = ("once", NOT_AVAILABLE) if client in HALF else ("broken", UNREADABLE)
    answer = client.ask(retrieving, [user(f"{word} handle {UNKNOWN}")])
    assert told in answer.text
    assert hides_all(answer, model)


@over(CLIENTS)
def test_later_turns_carry_what_the_provider_said_itself(client, retrieving, model):
    """Two more turns, as a client sends them that knows of nothing: call ids and signatures stay the provider's own."""
    messages = [user(f"{ONCE['content']} ({client})")]
    for task in ("plain: go on", "plain: and then"):
        answer = client.ask(retrieving, messages)
        messages += [*answer.messages, user(task)]
    answer = client.ask(retrieving, messages)
    assert FACTS[0] in answer.text
    assert len(model.requests()) == 4
    assert grows(model)
    later = [json.dumps(items_of(r)) for r in model.requests()[1:]]
    assert all(FACTS[0] in text for text in later)
    thinks = client.group == "claude" or client.speaks_responses
    assert not thinks or all(sign(THOUGHT) in text for text in later)
    assert hides_all(answer, model)


@over(OTHER_HALF)
def test_without_its_record_a_conversation_goes_on_as_the_client_has_it(client, retrieving, model):
    forgetful = type(client)(client.path, f"{client.group}-forgetful", client.stream)
    messages = [ONCE]
    for task in ("plain: go on", "plain: and then"):
        answer = forgetful.ask(retrieving, messages)
        messages += [*answer.messages, user(task)]
    forgetful.ask(retrieving, messages)
    assert [r["status"] for r in model.requests()] == [200] * 4
    assert TOOL not in json.dumps([items_of(r) for r in model.requests()[2:]])


@over(CLIENTS)
def test_a_turn_that_calls_the_clients_tool_too_shows_that_call_alone(client, retrieving, model):
    """Behind the client's result both calls are answered, in their order; without the record the client's is."""
    memory = "" if client in HALF else "-forgetful"
    client = type(client)(client.path, client.group + memory, client.stream)
    messages = [user(f"mixed handle {HANDLES[0]} ({client})")]
    shown = client.ask(retrieving, messages)
    assert shown.stop in ("tool_calls", "tool_use")
    assert TOOL not in shown.raw
    assert len(model.requests()) == 1
    messages += [*shown.messages, client.file_result(shown)]
    answer = client.ask(retrieving, messages)
    assert (FACTS[0] in answer.text) is not bool(memory)
    assert answer.stop in ("stop", "end_turn")
    client.ask(retrieving, [*messages, *answer.messages, user("plain")])
    assert [r["status"] for r in model.requests()] == [200] * 3
    assert grows(model)
    assert (FACTS[0] in json.dumps(items_of(model.requests()[-1])[1:])) is not bool(memory)


@over(HALF)
def test_a_further_call_that_overflows_is_made_smaller_and_sent_again(client, retrieving, model):
    """As any request is: the proxy takes the window for larger than it is, of a deployment that it knows nothing of yet."""
    small = type(client)(client.path, f"{client.group}-small-{CLIENTS.index(client)}", client.stream)
    answer = small.ask(retrieving, [user(f"once handle {LARGE}")])
    assert answer.stop in ("stop", "end_turn")
    assert [r["status"] for r in model.requests()] == [200, 400, 200]
    assert hides_all(answer, model)


@over(HALF)
def test_where_a_further_call_fails_the_client_gets_what_was_said_or_the_error(client, retrieving):
    """Not streamed: what was said, as cut off. Streamed: the error behind what was said."""
    answer = client.post(retrieving, [user(f"fails handle {HANDLES[0]}")])
    assert answer.status_code == 200
    assert LOOKING.split()[0] in answer.text
    assert not re.search(f'"name": ?"{TOOL}"', answer.text)
    assert ('"error":{' in answer.text.replace('"error": {', '"error":{')) is client.stream
    if not client.stream:
        body = answer.json()
        details = body.get("incomplete_details") or {}
        reason = details.get("reason") or body.get("stop_reason") or body["choices"][0]["finish_reason"]
        assert reason in ("max_tokens", "length", "max_output_tokens")


@over(OTHER_HALF)
def test_where_nothing_was_said_before_it_the_client_gets_the_error_of_the_further_call(client, retrieving):
    answer = client.post(retrieving, [user(f"mute handle {HANDLES[0]}")])
    assert answer.status_code == (200 if client.stream else 500)
    assert '"error"' in answer.text
    assert TOOL not in answer.text


def test_every_call_is_on_the_account_of_the_client(retrieving):
    """Each is logged by itself, under an id of its own, with the client's key and tags."""
    answer = CLIENTS[0].post(retrieving, [ONCE], metadata={"tags": ["mine"]})
    retrieving.wait_until(lambda: len(billed_with("mine", retrieving)) == 2, "both calls to be billed")
    first, second = billed_with("mine", retrieving)
    assert first[0] != second[0]
    assert answer.headers["x-litellm-call-id"] in (first[0], second[0])
    assert first[1] == second[1]


def billed_with(tag, proxy):
    """Return the id, key and tags of each call with a tag that was billed."""
    lines = [line for line in proxy.log().splitlines() if line.startswith("billed") and line.endswith("end")]
    told = [json.loads(line[len("billed ") : line.rindex("]") + 1]) for line in lines]
    return [t for t in told if tag in t[2]]


@over([c for c in HALF if c.stream])
def test_the_text_comes_at_once_and_a_client_that_leaves_takes_the_further_call_along(client, retrieving, model, gate):
    """What was said before the call is there while the tool is still being answered."""
    held = user(f"once handle {HELD}")
    try:
        with LOOPBACK.stream(
            "POST", retrieving.url + client.path, json=client.payload([held]), headers=retrieving.headers, timeout=60
        ) as answer:
            seen, pieces = "", answer.iter_text()  # a loop over it would close the answer at its end
            while LOOKING.split()[-1] not in seen:
                seen += next(pieces)
            assert len(model.requests()) == 1
            model.configure(holds=True)
            gate()
            model.wait_until(lambda requests: len(requests) == 2)
        model.wait_until(lambda requests: requests[-1]["left"])
    finally:
        gate()
