"""The logged figures say what was decided and what it did to the tokens, and hold no text of the request."""

from __future__ import annotations

import json

import pytest

from ctx_hooks.decision import Compressed, Figures, GaveUp, NotRetried, Rescued, Untouched
from ctx_hooks.telemetry.spend_log import figures_of

FIGURES = Figures(tokens_before=41_000, tokens_after=15_000, budget_tokens=16_000, window_tokens=20_000)
TOKENS = {"tokens_before": 41_000, "tokens_after": 15_000, "window_tokens": 20_000}
SECRET = {"messages": [{"role": "user", "content": "a secret"}]}


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        (Untouched("fits"), {"decision": "untouched"}),
        (Untouched("nothing to do", FIGURES), {"decision": "untouched", **TOKENS}),
        (Compressed(SECRET, FIGURES, ()), {"decision": "compressed", **TOKENS}),
        (Compressed({"max_tokens": 4_096}, None, ()), {"decision": "compressed", "max_tokens": 4_096}),
        (Rescued({**SECRET, "max_tokens": 900}, FIGURES, (), 2), {"decision": "rescued", "max_tokens": 900, **TOKENS}),
        (GaveUp(SECRET, FIGURES, "a secret is too long"), {"decision": "gaveup", **TOKENS}),
        (NotRetried("it cannot be made smaller", FIGURES), {"decision": "notretried", **TOKENS}),
    ],
    ids=lambda v: type(v).__name__,
)
def test_each_decision_is_logged_with_its_figures_and_no_text(decision, expected):
    logged = figures_of(decision, 2, ("defaults", "team x"))
    assert logged == {"attempt": 2, "policy": "defaults, team x", **expected}
    assert "secret" not in json.dumps(logged)
