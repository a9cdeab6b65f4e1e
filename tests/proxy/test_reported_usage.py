"""What clients, loggers and the spend see of the usage of a compressed request, on every route, streamed and not."""

import pytest
from configurations import deployment
from litellm_versions import STATES_STREAMED_USAGE
from routes import MODELS, NAMES, ROUTES, events_of, logged

from ctx_hooks.testing.streams import OUTPUT_TOKENS

WINDOW = 5_200
PRICES = {"input_cost_per_token": 0.001, "cache_read_input_token_cost": 0.0001, "output_cost_per_token": 0.01}
LONG_RESULTS = {"turns": 6, "result_chars": 4_200}
ORIGINAL = {"report_usage": "original"}
KINDS = {"original": (WINDOW, ORIGINAL), "whole": (1_000_000, ORIGINAL)}
"""Of groups: their window and policy."""
MOST_LEFT = 0.6
MOST_APART = 0.02
"""The provider adds four tokens to each message, and thinking a line to each turn, which no local count knows."""
RECORDS = ("usage", "usageMetadata")
UNLOGGED = "gemini-to-openai"
"""LiteLLM logs it under another id and bills nothing; and streamed, it states a usage of 0 before 1.108."""
over_every_route = pytest.mark.parametrize("name", NAMES)
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def groups(url):
    for name in NAMES:
        for kind, (window, policy) in KINDS.items():
            model = MODELS.get(name, "openai/served")
            yield deployment(url, f"usage-{name}-{kind}", model, max_input_tokens=window, ctx_hooks=policy, **PRICES)


@pytest.fixture(autouse=True)
def _roomy(provider):
    provider.configure(window_tokens=1_000_000, tokens_factor=1.2)


def asked(proxy, provider, name, policy, *, stream):
    """Return the answer, and the provider's record of the request."""
    fields = {"stream_options": {"include_usage": True}} if stream and name == "chat" else {}
    answer = ROUTES[NAMES.index(name)].ask(proxy, group=f"usage-{name}-{policy}", stream=stream, size=LONG_RESULTS, **fields)
    assert answer.status_code == 200, answer.text
    return answer, provider.requests()[-1]


def cost_of(read):
    fresh = read["input_tokens"] - read["cached_tokens"]
    prices = zip((fresh, read["cached_tokens"], OUTPUT_TOKENS), PRICES.values(), strict=True)
    return pytest.approx(sum(tokens * dollars for tokens, dollars in prices))


def told(answer):
    """Return the usage records of an answer that state an input."""
    events = events_of(answer.text) or [answer.json()]
    held = [holder for e in events for holder in (e, e.get("message"), e.get("response")) if isinstance(holder, dict)]
    records = [holder[name] for holder in held for name in RECORDS if holder.get(name)]
    return [record for record in records if input_of(record)]


def states_usage(name, *, stream):
    return not stream or name != UNLOGGED or STATES_STREAMED_USAGE


def input_of(usage):
    beside = sum(usage.get(n) or 0 for n in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    if "input_tokens" in usage and "total_tokens" not in usage:
        return usage["input_tokens"] + beside
    return next((usage[n] for n in ("prompt_tokens", "input_tokens", "promptTokenCount") if n in usage), None)


def total_of(usage):
    return usage.get("total_tokens") or usage.get("totalTokenCount")


@over_every_route
@streamed_or_not
def test_the_client_sees_the_size_of_what_it_sent_and_the_spend_what_was_billed(name, stream, proxy, provider):
    """Of what the provider's cache serves, too: the whole request has the same head."""
    _, original = asked(proxy, provider, name, "whole", stream=stream)
    answer, read = asked(proxy, provider, name, "original", stream=stream)
    billed = read["input_tokens"]
    assert billed < original["input_tokens"] * MOST_LEFT, "the request was compressed"
    records = told(answer)
    assert bool(records) is states_usage(name, stream=stream)
    for usage in records:
        assert input_of(usage) == pytest.approx(original["input_tokens"], rel=MOST_APART)
        assert total_of(usage) in (None, input_of(usage) + OUTPUT_TOKENS)
    if name != UNLOGGED:
        cost = cost_of(read)
        tokens = {"prompt_tokens": billed, "total_tokens": billed + OUTPUT_TOKENS}
        assert logged(proxy, answer).items() >= {**tokens, "response_cost": cost}.items()
        assert stream or float(answer.headers["x-litellm-response-cost"]) == cost
    assert read["cached_tokens"] > 0
