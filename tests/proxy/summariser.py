"""A scripted model that writes summaries: its name says how well."""

import json
from collections.abc import Mapping
from typing import Any

from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.rules import Format

GOOD = (
    "## Goal\nThe user asks for a review of the project that notes every risk.\n\n"
    "## Next steps\nRead the files that are left."
)
MARK = "notes every risk"
"""Stands in GOOD, and in no conversation of `conversations.py`."""
WRITTEN: Mapping[str, str] = {
    "answers": GOOD,
    "leased": GOOD,
    "narrow": GOOD,
    "nothing": "",
    "refuses": "I'm sorry, but I can't help with that request.",
    "invents": GOOD + "\n\n## Problems\nsrc/nowhere/invented_module.py fails in line 48213.",
}
"""By the model's name; one that is called `repeats` returns twice what it was sent. What hangs or fails is a setting."""


def summariser(fmt: Format, payload: Mapping[str, Any], answered: int) -> Reply:
    """Answer as a model that writes summaries, and any other model as briefly as can be."""
    del fmt, answered
    model = "answers" if payload.get("compaction") else str(payload.get("model"))
    if model == "repeats":
        return Reply(json.dumps(payload.get("messages"), ensure_ascii=False) * 2)
    return Reply(WRITTEN.get(model, "I have read it."))
