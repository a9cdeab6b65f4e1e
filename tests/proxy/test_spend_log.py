"""What LiteLLM logs of a request's cost, and the plugin of its savings: on native and translated routes, streamed or not."""

import pytest
from configurations import deployment
from routes import CHAT, MODELS, NAMES, ROUTES, logged

from ctx_hooks.testing.streams import OUTPUT_TOKENS

WINDOWS = {"compressed": 12_000, "whole": 1_000_000}
"""The small one holds a session of 8,000 tokens, but not the share that its policy keeps free for the answer as well."""
PRICES = {"input_cost_per_token": 0.001, "cache_read_input_token_cost": 0.0001, "output_cost_per_token": 0.01}
PLAIN, CACHED, OUTPUT = PRICES.values()
LOGGED = tuple(name for name in NAMES if name != "gemini-to-openai")
"""The other LiteLLM logs under another id, and bills nothing."""
SIZE = {"turns": 8, "result_chars": 3_200}
MOST_APART = 0.02
"""The provider adds four tokens to each message, and thinking a line to each turn, which no local count knows."""


def groups(url):
    for name in LOGGED:
        for group, window in WINDOWS.items():
            info = {"max_input_tokens": window, "ctx_hooks": {"reserve": "45%"}, **PRICES}
            yield deployment(url, f"spend-{name}-{group}", MODELS.get(name, "openai/served").replace("claude-", ""), **info)
    silent = deployment(url, "spend-without-usage", "openai/served", max_input_tokens=WINDOWS["compressed"])
    silent["litellm_params"]["additional_drop_params"] = ["stream_options"]
    yield silent


def test_stream_without_usage_is_logged_as_sent(proxy, provider):
    """LiteLLM itself would count what the client has sent."""
    provider.configure(window_tokens=1_000_000)
    answer = CHAT.ask(proxy, group="spend-without-usage", size={"turns": 20}, stream=True)
    assert answer.headers["x-ctx-hooks-decision"] == "compressed"
    assert answer.headers["x-ctx-hooks"].endswith(f"after={logged(proxy, answer)['prompt_tokens']}")


@pytest.mark.parametrize(("name", "stream"), [(name, n % 2 == 1) for n, name in enumerate(LOGGED)], ids=LOGGED)
def test_savings_are_what_whole_request_costs_more(name, stream, proxy, provider):
    def asked(group):
        """Return what is logged of an agent's session, and what the provider read of it."""
        answer = ROUTES[NAMES.index(name)].ask(proxy, group=f"spend-{name}-{group}", size=SIZE, stream=stream)
        assert answer.status_code == 200, answer.text
        found, read = logged(proxy, answer), provider.requests()[-1]
        fresh = read["input_tokens"] - read["cached_tokens"]
        cost = fresh * PLAIN + read["cached_tokens"] * CACHED + OUTPUT_TOKENS * OUTPUT
        assert found["response_cost"] == pytest.approx(cost), "the team pays what the provider bills"
        return found, read

    provider.configure(window_tokens=1_000_000)
    whole, original = asked("whole")
    provider.reset()
    found, read = asked("compressed")
    figures = found["metadata"]["ctx_hooks"]
    assert (figures["decision"], figures["beyond_window"]) == ("compressed", False)
    assert figures["tokens_before"] == pytest.approx(original["input_tokens"], rel=MOST_APART)
    saved = original["input_tokens"] - read["input_tokens"]
    assert figures["tokens_saved"] == pytest.approx(saved, rel=2 * MOST_APART)
    assert figures["dollars_saved"] == pytest.approx(whole["response_cost"] - found["response_cost"], rel=MOST_APART)
    again, read = asked("compressed")
    assert read["cached_tokens"] > 0
    assert 0 < again["metadata"]["ctx_hooks"]["dollars_saved"] != figures["dollars_saved"], "what the cache serves is cheap"
