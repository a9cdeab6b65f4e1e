"""A scripted model that writes summaries: its name says how well."""

from ctx_hooks.testing.behaviour import Reply

GOOD = (
    "## Goal\nThe user asks for a review of the project that notes every risk.\n\n"
    "## Next steps\nRead the files that are left."
)
MARK = "notes every risk"
"""Stands in GOOD, and in no conversation of `conversations.py`."""
WRITTEN = {"refuses": "I'm sorry, but I can't help with that.", "answers": GOOD}
"""By the model's name. What hangs or fails is a setting."""


def summariser(_fmt, payload, _answered):
    """Answer as a model that writes summaries, and any other model as briefly as can be."""
    return Reply(WRITTEN.get(str(payload.get("model")), "I have read it."))
