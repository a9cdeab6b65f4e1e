"""The caller of a request, as a value that a policy is resolved for."""

import json
from dataclasses import dataclass
from typing import Any

LONGEST_OVERRIDES_CHARS = 4_096
"""For the overrides of one scope as JSON: a policy with every field set has about 1,300, the longest `error_text` 2,000."""
LONGEST_NAME_CHARS = 200
"""For names of sessions and policies: patterns are written by hand, and LiteLLM's own ids have 36 or 64 characters."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request, with the names that scopes match and the overrides in its metadata.

    Overrides (`deployment`, `organization`, `project`, `team`, `key`, `request`) are JSON texts, as `as_text` returns them,
    so that a caller is hashable. `too_long` lists the kinds of names that were left out for their length.

    >>> Caller(group="gpt", team_names=("research",), team=as_text({"language": "zh"})).team
    '{"language": "zh"}'
    """

    group: str = ""
    deployment: str = ""
    session: str = ""
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
    """Return overrides as the JSON text of a Caller, "" for none; if they are invalid, a text with the reason.

    Encoding stops at the first piece of JSON beyond LONGEST_OVERRIDES_CHARS.
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
"""Without the check for cycles: a cycle ends as too long, and the check would keep its objects until garbage collection."""
_TOO_LONG = json.dumps([f"over {LONGEST_OVERRIDES_CHARS:,} characters"])
_UNREADABLE = json.dumps(["unreadable"])
"""Lists are no overrides: resolving one reports a mistake that quotes the reason."""
