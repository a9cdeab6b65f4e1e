"""Who asks for what, as a value that a policy is resolved for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

LONGEST_OVERRIDES_CHARS = 4_096
"""Of the overrides of one scope as JSON: a policy with every field set has about 1,300, the longest `error_text` 2,000."""
LONGEST_NAME_CHARS = 200
"""Of a session, a tag or a policy: patterns are written by hand, and LiteLLM's own ids have 36 or 64 characters."""
MOST_TAGS = 20
"""More tags than anybody writes policies for."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks for what, as LiteLLM knows it. Overrides are JSON texts, so that a caller can be looked up by value.

    `too_long` names what the request gave as a name and is none: it was left out.
    """

    group: str = ""
    deployment: str = ""
    session: str = ""
    tags: tuple[str, ...] = ()
    organization: str = ""
    project: str = ""
    team_names: tuple[str, ...] = ()
    team: str = ""
    key_names: tuple[str, ...] = ()
    key: str = ""
    request_policy: str = ""
    request: str = ""
    too_long: tuple[str, ...] = ()


def as_text(overrides: Any) -> str:
    """Return overrides as the JSON text of a Caller, empty for none; for what cannot be overrides, a text that says why.

    It stops at the first piece of JSON that is too much.
    """
    if overrides is None or overrides == {}:
        return ""
    pieces: list[str] = []
    chars = 0
    try:
        for piece in _ENCODER.iterencode(overrides):
            chars += len(piece)
            if chars > LONGEST_OVERRIDES_CHARS:
                return _TOO_LONG
            pieces.append(piece)
    except (TypeError, ValueError, RecursionError):  # keys of several types, a circle, a nesting without end
        return _UNREADABLE
    return "".join(pieces)


_ENCODER = json.JSONEncoder(sort_keys=True, default=repr, ensure_ascii=False, check_circular=False)
"""Its check for circles would hold what it was stopped in until the next garbage collection; a circle is too long here."""
_TOO_LONG = json.dumps([f"over {LONGEST_OVERRIDES_CHARS:,} characters"])
_UNREADABLE = json.dumps(["unreadable"])
"""Lists, which no overrides are: resolving them gives a line that quotes the reason."""
