"""Whatever protocol a deployment speaks, a session overflows once at most, and not at all where the window is known."""

import asyncio
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import uuid4

import litellm
import pytest
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth
from protocols import PROTOCOLS, REFUSED_IN_STREAM

from ctx_hooks.hook import CtxHooks
from ctx_hooks.litellm_compat.registry import USAGE
from ctx_hooks.testing import ProviderSettings, agent_session

WINDOW = 8_000
BELIEVED = 200_000
UNKNOWN_TURNS, KNOWN_TURNS = range(8, 18, 3), range(9, 16, 3)
"""Those around which a session outgrows the window, and the compacted session once more."""
LEAST_FRACTION = 0.35
"""A session is compacted to half of the window or a little below."""
AWS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region_name": "us-east-1"}
SECONDS = 300
"""For what takes milliseconds on a quiet machine."""


class Logged(CustomLogger):
    """A second callback: LiteLLM tells them in their order, so the plugin has learned by then. It keeps one of a class."""

    answered: ClassVar[dict[str, asyncio.Event]] = defaultdict(asyncio.Event)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        self.answered[kwargs["litellm_call_id"]].set()


@dataclass(frozen=True)
class Row:
    """A deployment's parameters, where the provider's address is {url}, and how that provider words an overflow."""

    model: str
    wording: str
    base: str = "{url}"
    params: dict[str, Any] = field(default_factory=dict)
    unbilled: tuple[str, ...] = ()
    """Modes in which LiteLLM reads none of the usage that the provider states."""


CLAUDE = "anthropic.claude-3-5-sonnet-20240620-v1:0"
PROVIDER = (ProviderSettings(tokens_factor=1.2), None, PROTOCOLS)
ROWS = {
    "bedrock-converse": Row(f"bedrock/converse/{CLAUDE}", "bedrock_converse", params=AWS),
    "bedrock-invoke": Row(f"bedrock/invoke/{CLAUDE}", "bedrock_invoke", params=AWS),
    "cohere": Row("cohere_chat/command-r-plus", "cohere_excess", "{url}/v2/chat", unbilled=("streamed",)),
    "cohere-without-count": Row("cohere_chat/command-r-plus", "cohere", "{url}/v2/chat", unbilled=("streamed",)),
    "mistral": Row("mistral/mistral-large-latest", "mistral", "{url}/mistral/v1"),
    "ollama": Row("ollama_chat/served", "ollama"),
}


@pytest.fixture
def speaking(provider, proxy_router, monkeypatch):
    """Return how a deployment that nothing is known of is asked, as the proxy asks its Router."""
    monkeypatch.setattr(litellm, "drop_params", True)

    def speak(name, window_tokens=BELIEVED):
        row = ROWS[name]
        parameters = {"model": row.model, "api_base": row.base.format(url=provider.url), "api_key": "k", **row.params}
        info = {"id": uuid4().hex, "max_input_tokens": window_tokens, "ctx_hooks": {"block_below_tokens": 0}}
        router = proxy_router({"model_name": "one", "litellm_params": parameters, "model_info": info}, num_retries=0)
        monkeypatch.setattr(litellm, "callbacks", [CtxHooks(), Logged()])
        return Asked(router, litellm.callbacks[0])

    return speak


@dataclass(frozen=True)
class Asked:
    """A Router behind the plugin's hooks."""

    router: litellm.Router
    hooks: CtxHooks

    async def text_of(self, session: dict[str, Any], *, stream: bool, until_logged: bool) -> str:
        """Return the text of the answer to a request; what it shows is learned behind it, once it is logged."""
        call = uuid4().hex
        data = {**session, "model": "one", "stream": stream, "metadata": {}, "litellm_call_id": call}
        data |= {"stream_options": {"include_usage": True}} if stream else {}
        fields = await self.hooks.async_pre_call_hook(UserAPIKeyAuth(api_key="sk-one"), None, data, "acompletion")
        answer = await self.router.acompletion(**fields)
        if stream:
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in answer if chunk.choices])
        else:
            text = answer.choices[0].message.content
        if until_logged:
            async with asyncio.timeout(SECONDS):
                await Logged.answered[call].wait()
        return text


def prepared(provider, name, **settings):
    """Let the provider behave as a row says."""
    row = ROWS[name]
    provider.reset(**{"refused_body": "", "wording": row.wording, "window_tokens": WINDOW, **settings})


async def run(asked, provider, name, turns, *, stream):
    """Run a session turn by turn, and return the provider's records of it."""
    prepared(provider, name)
    session = agent_session("openai-chat", turns=turns[-1] + 1, result_chars=2_000)
    for turn in turns:
        sent = {**session, "messages": session["messages"][: 2 + 2 * turn]}
        learns = turn == turns[0]
        assert "Answer" in await asked.text_of(sent, stream=stream, until_logged=learns)
    return provider.requests()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ROWS)
async def test_a_session_of_unknown_window_overflows_once_and_every_turn_is_answered(name, stream, speaking, provider):
    if name == "cohere-without-count" and stream and USAGE.fault:
        pytest.skip("this LiteLLM counts what the client sent as the usage of a stream that states none")
    records = await run(speaking(name), provider, name, UNKNOWN_TURNS, stream=stream)
    assert [r["status"] for r in records].count(200) == len(UNKNOWN_TURNS)
    refused = [r for r in records if r["status"] != 200]
    assert [r["error"] for r in refused if r["input_tokens"] <= WINDOW] == []
    assert len(refused) == 1
    after = [r["input_tokens"] for r in records[records.index(refused[0]) + 1 :]]
    assert min(after) > LEAST_FRACTION * WINDOW, "what was sent is not taken for what the client sent"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", ROWS)
async def test_a_session_of_known_window_never_overflows(name, stream, speaking, provider):
    """Where nothing says how many tokens the provider counts, the first overflow is what says it."""
    records = await run(speaking(name, WINDOW), provider, name, KNOWN_TURNS, stream=stream)
    refused = [r["input_tokens"] for r in records if r["status"] != 200]
    assert max(r["input_tokens"] for r in records) > LEAST_FRACTION * WINDOW
    assert min(refused, default=WINDOW + 1) > WINDOW
    assert len(refused) <= (("streamed" if stream else "whole") in ROWS[name].unbilled)


@pytest.mark.parametrize(
    ("name", "refused_body"), [(name, body) for name, bodies in REFUSED_IN_STREAM.items() for body in bodies]
)
async def test_an_overflow_told_inside_a_stream_is_retried_once(name, refused_body, speaking, provider):
    prepared(provider, name, refused_body=refused_body)
    session = agent_session("openai-chat", turns=12, result_chars=2_000)
    session["messages"].pop()
    assert "Answer" in await speaking(name).text_of(session, stream=True, until_logged=False)
    assert [r["status"] == 200 for r in provider.requests()] == [False, True]
