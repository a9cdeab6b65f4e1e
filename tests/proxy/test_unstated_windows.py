"""Servers whose window nobody states, or that count otherwise: few refusals show what they hold, and then it is used."""

import re

import pytest
from configurations import deployment
from routes import CHAT, MESSAGES

from ctx_hooks.testing import agent_session
from ctx_hooks.testing.wordings import WORDINGS, Wording

BELIEVED = 128_000
FACTORS = (0.85, 1.17, 1.31)
CODEX = [(factor, window) for window in ("known", "unknown") for factor in FACTORS]
CODEX_WINDOW = 12_000
NAMELESS = {"chat": (CHAT, "openai/served", 8_000, 55_000), "messages": (MESSAGES, "anthropic/served", 20_000, 30_000)}
"""Each with its window, and how many tokens the session has when it arrives."""


def _lower_bound(message, _code):
    """Return vLLM's refusal: it stops counting behind the window less the output."""
    limit, output = map(int, re.findall(r"\d+", message))
    text = (
        f"This model's maximum context length is {limit} tokens. However, you requested {output} output tokens and your "
        f"prompt contains at least {limit - output + 1} input tokens, for a total of at least {limit + 1} tokens. Please "
        f"reduce the length of the input prompt or the number of requested output tokens."
    )
    return {"error": {"message": text, "type": "BadRequestError", "param": "input_tokens", "code": 400}}


WORDINGS["vllm-at-least"] = Wording("{limit} {output}", body=_lower_bound)
WORDINGS["nameless"] = Wording("Input is too long for requested model.")


def groups(url):
    yield deployment(url, "at-least", "hosted_vllm/served", max_input_tokens=BELIEVED)
    for name, (_, model, *_) in NAMELESS.items():
        yield deployment(url, f"nameless-{name}", model, max_input_tokens=BELIEVED)
    for factor, window in CODEX:
        known = CODEX_WINDOW if window == "known" else BELIEVED
        yield deployment(url, f"codex-{factor}-{window}", "openai/served", max_input_tokens=known)


def post(route, proxy, request):
    answer = route.post(proxy, request)
    assert answer.status_code == 200, answer.text
    proxy.wait_for_log(f"answered {answer.headers['x-litellm-call-id']}")


def test_a_lower_bound_is_refused_once_and_no_output_is_lowered_in_vain(proxy, provider):
    provider.configure(window_tokens=12_000, wording="vllm-at-least", counts_output=True)
    request = {**agent_session("openai-chat", model="at-least", turns=20, result_chars=4_500), "max_tokens": 2_000}
    for _ in range(4):
        post(CHAT, proxy, request)
    records = provider.requests()
    assert records[0]["input_tokens"] > 24_000
    assert [r["status"] for r in records] == [400, 200, 200, 200, 200]
    assert all(r["input_tokens"] > 0.5 * 12_000 for r in records)


@pytest.mark.parametrize("name", NAMELESS)
def test_a_window_without_figures_is_used_again(name, proxy, provider):
    route, _, window, arrived = NAMELESS[name]
    provider.configure(window_tokens=window, wording="nameless")
    chars, turns = window // 4, 14
    session = agent_session(route.fmt, model=f"nameless-{name}", turns=turns + arrived * 4 // chars, result_chars=chars)
    messages, end = session["messages"], len(session["messages"]) - 1
    for turn in range(turns):
        post(route, proxy, {**session, "messages": messages[: end - 2 * (turns - 1 - turn)]})
    records = provider.requests()
    first = [r["status"] for r in records].index(200)
    later = records[first:]
    assert sum(r["status"] == 400 for r in later) <= 1
    used = [r["input_tokens"] for r in later if r["status"] == 200]
    assert max(used[:8]) > 0.8 * window, used
