"""What compaction cut is retrieved by the model, on every route, by whichever worker and by its own tenant only.

The client sees one answer, and none of the calls between.
"""

import json
import re
import tempfile
from dataclasses import replace

from configurations import deployment
from retrieving import CLIENTS, FACT, HALF, HANDLE, LOOKING, OTHER_HALF, TOOL, answered_requests, over, read_long_ago
from strategies import items_of

from ctx_hooks.testing.streams import OUTPUT_TOKENS

WINDOW = 4_000
ROUNDS = 3
NOT_AVAILABLE = "not available"
KEPT = tempfile.TemporaryDirectory(prefix="ctx_hooks_archive_")
"""The archive on disk that two proxies share."""
MODELS = {"chat": "openai/seeker", "claude": "anthropic/claude-seeker"}
ARCHIVES = {"own": {}, "disk": {"path": KEPT.name}}


def groups(url):
    kept_by = {name: {"retrieval": True, "archive": {"scope": "team", **own}} for name, own in ARCHIVES.items()}
    for kind, model in MODELS.items():
        for archive, policy in kept_by.items():
            yield deployment(url, f"{archive}-{kind}", model, max_input_tokens=WINDOW, ctx_hooks=policy)
        yield deployment(url, f"unknown-{kind}", model, ctx_hooks=kept_by["own"])


checked = groups


def of(client, kind):
    """Return the client with a group of that kind."""
    return replace(client, group=f"{kind}-{client.group}")


def ask(client, proxy, messages, team="research", kind="own"):
    """Ask as a client that has a tool of its own, and return what it sees."""
    return of(client, kind).ask(proxy, messages, team)


@over(CLIENTS)
def test_removed_fact_reaches_the_answer(client, provider, proxy):
    answer = ask(client, proxy, read_long_ago(client, "seek"))
    assert FACT in answer.text
    assert TOOL not in answer.raw
    assert answer.stop in ("stop", "end_turn")
    first, second = answered_requests(provider)
    assert FACT not in json.dumps(first["payload"])
    assert FACT in json.dumps(second["payload"])
    assert first["payload"]["tools"] == second["payload"]["tools"]
    assert answer.tokens == first["input_tokens"] + second["input_tokens"] + 2 * OUTPUT_TOKENS


@over(HALF)
def test_retry_offers_the_tool(client, proxy):
    """The first attempt is refused; the retry is compacted and offers the tool."""
    answer = ask(client, proxy, read_long_ago(client, "seek", seed=6), kind="unknown")
    assert FACT in answer.text
    assert TOOL not in answer.raw


def called_in(items):
    """Return the ids of the calls that have a result."""
    return set(re.findall(r'"(?:call_id|tool_use_id|tool_call_id)": "([^"]+)"', json.dumps(items)))


def hides_all(answer, provider):
    """Whether nothing that a client gets names the tool, or an id of a call that is not its own."""
    listed = [*answer.messages, *(b for m in answer.messages for b in m.get("content") or () if isinstance(b, dict))]
    listed += [call for m in answer.messages for call in m.get("tool_calls") or ()]
    ids = {i.get("call_id") or i["id"] for i in listed if i.get("type") in ("tool_use", "function", "function_call")}
    first, *further = (called_in(items_of(r["payload"])) for r in provider.requests())
    hidden = set().union(*further) - first
    return TOOL not in answer.raw and not any(name in answer.raw for name in hidden - ids)


@over(OTHER_HALF)
def test_model_is_stopped_after_three_rounds(client, provider, proxy):
    """The last request forbids calls; what is called nevertheless is taken out, and the answer ends as any other."""
    messages = read_long_ago(client, "always", seed=20)
    answer = ask(client, proxy, messages)
    read = answered_requests(provider)
    assert len(read) == 1 + ROUNDS
    assert answer.tokens == sum(r["input_tokens"] + OUTPUT_TOKENS for r in read), "all of them are billed"
    assert answer.text.split() == LOOKING.split() * ROUNDS
    assert answer.stop in ("stop", "end_turn")
    assert hides_all(answer, provider)
    assert read[-1]["payload"]["tool_choice"] in ("none", {"type": "none"})
    following = ask(client, proxy, [*messages, *answer.messages, {"role": "user", "content": "question: again"}])
    assert following.stop in ("stop", "end_turn")


def handles_of(client, provider, proxy, team, seed=17):
    """Return the handles that a team's request holds."""
    ask(client, proxy, read_long_ago(client, "seek", seed=seed), team, kind="disk")
    found = HANDLE.findall(json.dumps(answered_requests(provider)[0]["payload"]["messages"]))
    provider.reset()
    return found


def test_foreign_handles_get_the_same_answer(provider, proxy, checking):
    client = CLIENTS[0]
    theirs = list(dict.fromkeys(handles_of(client, provider, proxy, "theirs")))
    for handle in (*theirs[:2], "aaaabbbbcccc", "../../etc/passwd", "x" * 2_000, ""):
        answer = ask(client, proxy, read_long_ago(client, f"try {handle} now", seed=5), "ours", kind="disk")
        assert NOT_AVAILABLE in answer.text
        assert FACT not in answer.text
        provider.reset()
    asked = (ask(client, checking, read_long_ago(client, f"try {h} now", seed=6), "theirs", kind="disk") for h in theirs)
    assert any(FACT in answer.text for answer in asked)
