"""A deployment that writes summaries gets its own back as it signed them; every other one, and every worker after a refusal,
gets the text, and whatever the provider does, every request is answered.
"""

import copy
import json

import litellm
import pytest
from litellm import Router
from litellm.proxy import proxy_server
from litellm.proxy._types import UserAPIKeyAuth
from protocols import on_demand
from strategies import items_of
from waits import until

import ctx_hooks
from ctx_hooks.hook import CtxHooks
from ctx_hooks.litellm_compat.registry import installed
from ctx_hooks.runtime.warnings import forget_warnings
from ctx_hooks.testing import Call, FakeProvider, ProviderSettings, Reply, sign

WINDOW = 12_000
ABOVE_SOFT_MARK, COMPACTED, NEXT_IS_NEAR, COMPACTED_AGAIN = 24, 40, 54, 75
WRITER = "claude-opus-4-8"
GOOD = "## Goal\nThe user asks for a review of the project that notes every risk.\n\n## Next steps\nRead what is left.\n"
REPLIES = {
    "accepted": Reply(GOOD),
    "empty": Reply(""),
    "calls": Reply(calls=[Call("read_file", {"path": "a.py"})]),
    "refuses": Reply("I'm sorry, but I can't help with that."),
    "invents": Reply(GOOD + "Then see src/nowhere/invented_module.py, line 48213."),
}
AUTH = UserAPIKeyAuth(api_key="sk-one", token="sk-one", team_id="t1")  # noqa: S106 - no secret
CHAT, MESSAGES = ("openai-chat", "acompletion"), ("anthropic", "anthropic_messages")
SUMMARY = {"model": "provider", "soft_fraction": 0.5, "timeout_seconds": 60.0}
pytestmark = pytest.mark.skipif(installed() < (1, 106), reason="LiteLLM knows no compaction on demand before")


@pytest.fixture
def provider():
    replies = {"now": "accepted"}

    def script(_fmt, payload, _answered):
        is_asked = payload.get("compaction") or payload["model"] == "wide"
        return REPLIES[replies["now"]] if is_asked else Reply("I have read it.")

    with FakeProvider(
        ProviderSettings(window_tokens=WINDOW, windows={"wide": 200_000}), script, [on_demand.ON_DEMAND]
    ) as running:
        running.replies = replies
        yield running


@pytest.fixture
def talk(provider, monkeypatch):
    """Return what asks a group of a proxy's Router in a growing conversation, and gives what each deployment got."""

    def deployment(group, name, model, **own):
        url = provider.url if model.startswith("anthropic/") else f"{provider.url}/v1"
        params = {"model": model, "api_base": url, "api_key": "none", **own}
        return {"model_name": group, "litellm_params": params, "model_info": {"id": name, "max_input_tokens": WINDOW}}

    monkeypatch.setattr(litellm, "model_cost", copy.deepcopy(litellm.model_cost))  # LiteLLM notes the small windows there
    made = Router(
        model_list=[
            deployment("claude", "one", f"anthropic/{WRITER}"),
            deployment("claudes", "two", f"anthropic/{WRITER}"),
            deployment("other", "three", "openai/other"),
            deployment("waits", "one-more", f"anthropic/{WRITER}"),
            deployment("old", "four", "anthropic/claude-3-haiku-20240307"),
            deployment("small", "five", "openai/wide"),
            deployment("mixed", "six", f"anthropic/{WRITER}", order=1),
            deployment("mixed", "seven", "openai/other", order=2),
        ],
        num_retries=0,
        fallbacks=[{"claude": ["other"]}],
    )  # fmt: skip
    monkeypatch.setattr(proxy_server, "llm_router", made)
    own = {"old": {**SUMMARY, "fallback_model": "small"}, "waits": {**SUMMARY, "mode": "blocking"}}
    models = {group: {"summary": summary} for group, summary in own.items()}
    settings = {"defaults": {"summary": SUMMARY, "fallbacks": "last"}, "models": models}
    for name in ("input_callback", "success_callback", "failure_callback"):
        monkeypatch.setattr(litellm, name, [])
    monkeypatch.setattr(litellm, "callback_settings", {"ctx_hooks": settings}, raising=False)
    hooks = CtxHooks()
    monkeypatch.setattr(litellm, "callbacks", [hooks])
    return Talk(made, hooks, provider)


class Talk:
    def __init__(self, router, hooks, provider):
        self.router, self.hooks, self.provider = router, hooks, provider

    async def ask(self, group, turns, route=CHAT, **fields):
        """Ask in the conversation as long as this, and return the request that was answered."""
        call_type = route[1]
        said = [{"role": "user", "content": "Review the project with me, part by part."}]
        for n in range(turns):
            said.append({"role": "assistant", "content": f"Here is part {n}. " + f"It reads module {n} and writes. " * 52})
            said.append({"role": "user", "content": f"And what is behind part {n}?"})
        metadata = {"metadata" if route is CHAT else "litellm_metadata": {"user_api_key_auth": AUTH}}
        data = {"model": group, "messages": said, "max_tokens": 100, **metadata, **fields}
        sent = await self.hooks.async_pre_call_hook(AUTH, None, data, call_type)
        before = len(self.provider.requests())
        await getattr(self.router, call_type)(**sent)
        return [r for r in self.provider.requests()[before:] if not r["payload"].get("compaction")][-1]

    async def summary(self, group="claude", turns=ABOVE_SOFT_MARK, route=CHAT, **fields):
        """Ask in a conversation that is near its next compaction, and return the end of the summary that this begins."""
        heard = []
        stop = ctx_hooks.on("after_summary", heard.append)
        try:
            await self.ask(group, turns, route, **fields)
            await until(lambda: bool(heard))
        finally:
            stop()
        (self.event,) = heard
        return self.event.outcome, self.event.reason

    def asked(self):
        return [r for r in self.provider.requests() if r["payload"].get("compaction")]


def block_in(request):
    """Return the block that a request begins with, None without one; there is none anywhere else."""
    text = json.dumps(items_of(request["payload"]))
    first = items_of(request["payload"])[0]["content"]
    block = first[0] if isinstance(first, list) and first[0]["type"] == "compaction" else None
    assert text.count('"signature"') == (block is not None)
    return block


@pytest.mark.parametrize("route", [CHAT, MESSAGES], ids=["chat", "messages"])
async def test_the_deployment_that_wrote_a_summary_gets_it_first_and_as_it_signed_it(talk, route):
    assert await talk.summary(route=route) == ("accepted", "")
    compacted = await talk.ask("claude", COMPACTED, route)
    assert compacted["status"] == 200, compacted["error"]
    assert block_in(compacted) == {"type": "compaction", "content": GOOD, "signature": sign(GOOD)}
    assert "notes every risk" not in json.dumps(items_of(compacted["payload"])[1:])
    later = await talk.ask("claude", COMPACTED + 1, route)
    before, behind = items_of(compacted["payload"]), items_of(later["payload"])
    assert json.dumps(behind[: len(before) - 1]) == json.dumps(before[:-1])


async def test_it_is_asked_with_the_request_that_was_sent_and_its_iterations_are_the_bill(talk):
    tools = [{"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}]
    fields = {"system": "You review projects.", "tools": tools, "tool_choice": {"type": "any"}, "stop_sequences": ["END"]}
    assert await talk.summary(route=MESSAGES, **fields) == ("accepted", "")
    answered, asked = talk.provider.requests()
    same = ("model", "system", "tools", "messages")
    assert {name: asked["payload"][name] for name in same} == {name: answered["payload"][name] for name in same}
    assert {*asked["payload"]} == {*same, "max_tokens", "compaction", "stream"}
    assert asked["payload"]["max_tokens"] >= 4_096
    assert asked["cached_tokens"] == asked["input_tokens"]
    price = litellm.model_cost[WRITER]
    event = talk.event
    assert (event.calls, event.input_tokens) == (1, asked["input_tokens"])
    spent = event.input_tokens * price["input_cost_per_token"] + event.output_tokens * price["output_cost_per_token"]
    assert event.dollars == pytest.approx(spent)


@pytest.mark.parametrize("group", ["claudes", "other", "old"])
async def test_any_other_deployment_gets_the_text_and_never_what_is_signed(talk, group):
    """One of the same model too: nothing says that its account is the same."""
    await talk.summary(route=MESSAGES)
    asked = await talk.ask(group, COMPACTED, MESSAGES)
    assert block_in(asked) is None
    assert "notes every risk" in json.dumps(asked["payload"])


@pytest.mark.parametrize("route", [CHAT, MESSAGES], ids=["chat", "messages"])
async def test_no_other_deployment_of_the_group_is_asked_for_it_when_that_of_the_conversation_is_gone(talk, route):
    stop = ctx_hooks.on("before_summary", lambda _: talk.router.delete_deployment("six"))
    try:
        assert (await talk.summary("mixed", route=route))[0] == "failed"
    finally:
        stop()
    assert [r["model"] for r in talk.provider.requests()] == [WRITER]


async def test_a_fallback_in_the_middle_of_a_conversation_gets_the_text(talk):
    await talk.summary(route=MESSAGES)
    assert block_in(await talk.ask("claude", COMPACTED, MESSAGES))
    talk.provider.configure(failing_models=[WRITER])
    fallen = await talk.ask("claude", COMPACTED, MESSAGES)
    assert (fallen["model"], block_in(fallen)) == ("other", None)
    assert "notes every risk" in json.dumps(fallen["payload"])


@pytest.mark.parametrize("refusal", ["messages.0.content.0: compaction_signature_invalid", "Invalid `signature`"])
@pytest.mark.parametrize("route", [CHAT, MESSAGES], ids=["chat", "messages"])
async def test_a_summary_that_is_refused_is_sent_as_text_once_and_for_ever(talk, route, refusal, caplog, monkeypatch):
    await talk.summary(route=route)
    monkeypatch.setattr(on_demand, "NO_LONGER_TAKEN", {sign(GOOD): refusal})
    before = len(talk.provider.requests())
    answered = await talk.ask("claude", COMPACTED, route)
    assert [r["status"] for r in talk.provider.requests()[before:]] == [400, 200]
    assert block_in(answered) is None
    assert "notes every risk" in json.dumps(answered["payload"])
    on_demand.NO_LONGER_TAKEN.clear()
    assert block_in(await talk.ask("claude", COMPACTED, route)) is None
    assert caplog.text.count("has refused a request with its own summary") == 1


async def test_a_summary_of_which_the_check_leaves_out_a_point_is_sent_as_text(talk):
    talk.provider.replies["now"] = "invents"
    assert await talk.summary() == ("accepted", "unknown_names")
    asked = await talk.ask("claude", COMPACTED)
    assert block_in(asked) is None
    assert "notes every risk" in json.dumps(asked["payload"])
    assert "invented_module" not in json.dumps(asked["payload"])


@pytest.mark.parametrize("reply", ["empty", "calls", "refuses"])
async def test_without_a_usable_summary_the_lines_of_the_conversation_are_sent(talk, reply):
    talk.provider.replies["now"] = reply
    assert (await talk.summary(route=MESSAGES))[0] == "rejected"
    asked = await talk.ask("claude", COMPACTED, MESSAGES)
    assert block_in(asked) is None
    assert "notes every risk" not in json.dumps(asked["payload"])


async def test_where_the_deployment_cannot_write_the_operators_model_does(talk):
    assert await talk.summary("old") == ("accepted", "")
    assert not talk.asked()
    compacted = await talk.ask("old", COMPACTED)
    assert block_in(compacted) is None
    assert "notes every risk" in json.dumps(compacted["payload"])


async def test_where_nobody_can_write_one_warning_says_so(talk, caplog):
    forget_warnings()
    for turns in (ABOVE_SOFT_MARK, COMPACTED):
        assert (await talk.ask("other", turns))["status"] == 200
    assert caplog.text.count("openai/other writes no summaries of openai-chat requests: they are extracted") == 1
    assert not talk.asked()


async def test_a_request_that_waits_for_its_summary_has_it(talk):
    for turns in (COMPACTED, COMPACTED_AGAIN):
        assert block_in(await talk.ask("waits", turns, MESSAGES))
        assert {r["status"] for r in talk.provider.requests()} == {200}


async def test_the_next_summary_is_asked_for_behind_the_one_before(talk):
    await talk.summary()
    assert block_in(await talk.ask("claude", COMPACTED))
    for turns in range(NEXT_IS_NEAR, COMPACTED_AGAIN):
        await talk.ask("claude", turns)
        if len(talk.asked()) > 1:
            break
    _, second = talk.asked()
    assert second["status"] == 200, second["error"]
    assert block_in(second)["content"] == GOOD
    assert second["cached_tokens"] == second["input_tokens"], "all of it was sent before"


async def test_a_request_that_is_compacted_otherwise_has_the_text(talk):
    """Threshold compaction "can't run on a request that carries a signed block"."""
    await talk.summary(route=MESSAGES)
    edits = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}]}
    assert block_in(await talk.ask("claude", COMPACTED, MESSAGES, context_management=edits)) is None
