"""A provider that counts 1.31 tokens where tiktoken counts one, in a wording or two for each route and mode.

How each wording is recognised and what is learned of it, tests/overflow proves, and tests/litellm_compat that LiteLLM's
exception tells as much; here, that it reaches that code.
"""

from __future__ import annotations

import pytest
from configurations import deployment
from litellm_versions import STATES_STREAMED_USAGE
from routes import MODELS, NAMES, ROUTES

from ctx_hooks.testing.wordings import WORDINGS

WAYS = [(route, name, stream) for route, name in zip(ROUTES, NAMES, strict=True) for stream in (False, True)]
SHARE = 3
"""Of the wordings, one of so many."""
CASES = [(w, *WAYS[n % len(WAYS)]) for n, w in enumerate([w for w in WORDINGS if w != "sglang_stream"][::SHARE])]
UNBILLED = set() if STATES_STREAMED_USAGE else {"gemini-to-openai"}
"""There LiteLLM asks for no usage in a stream that it translates to Google's, so of a wording without the input's count only
the limit is learned, and not what the provider counts for a token here."""


def group_of(wording, name, stream):
    return f"{wording}-{name}-{'streamed' if stream else 'whole'}"


def groups(url):
    for wording, _, name, stream in CASES:
        yield deployment(url, group_of(wording, name, stream), MODELS.get(name, "openai/served"))


@pytest.mark.parametrize(
    ("wording", "route", "name", "stream"), CASES, ids=[group_of(w, name, s) for w, _, name, s in CASES]
)
def test_every_wording_is_answered_with_few_retries_and_the_next_request_needs_none(
    wording, route, name, stream, proxy, provider
):
    group = group_of(wording, name, stream)
    provider.configure(wording=wording, tokens_factor=1.31)
    answer = route.ask(proxy, group=group, stream=stream)
    assert answer.status_code == 200, answer.text
    assert "Answer" in answer.text
    *refused, accepted = provider.requests()
    assert accepted["status"] == 200
    # LiteLLM logs an answer after its client has it, by a task of its own; the next request comes later than that.
    proxy.wait_for_log(f"learned of {group}\n")
    assert 1 <= len(refused) <= (1 if WORDINGS[wording].figures else 2), [r["input_tokens"] for r in refused]
    provider.reset()
    assert route.ask(proxy, group=group, stream=stream, seed=1).status_code == 200
    statuses = [r["status"] for r in provider.requests()]
    unlearned = stream and name in UNBILLED and "{input}" not in WORDINGS[wording].text
    assert statuses == [200] or (statuses == [400, 200] and unlearned), "the limit is known now"
