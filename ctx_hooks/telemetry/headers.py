"""The response headers: what was done with a request, and what its caller asked for and may not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.decision import Decision, NotRetried, Outcome, Untouched, changes_of, outcome_of
from ctx_hooks.request.output_limit import output_limits_in
from ctx_hooks.runtime.warnings import CUT, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DONE = "x-ctx-hooks"
IGNORED = "x-ctx-hooks-ignored"
"""What was done with the request, in words; which of its own settings the policy does not allow."""
DECISION = "x-ctx-hooks-decision"
BEFORE = "x-ctx-hooks-tokens-before"
AFTER = "x-ctx-hooks-tokens-after"
ATTEMPTS = "x-ctx-hooks-attempts"
POLICY = "x-ctx-hooks-policy"
"""The same one by one: estimates in provider tokens, attempts from 1, and the scopes that set a field of the policy."""
MOST_CHARS = 1_024
"""Of one value. Clients and proxies refuse more than 8 to 64 KB of headers in all, most of which are LiteLLM's."""
FAILED: Outcome = "failed"


def with_decision(
    headers: Mapping[str, str], decision: Decision, attempt: int = 0, scopes: Sequence[str] = ()
) -> dict[str, str]:
    """Return the headers of a request with a decision about it; an untouched attempt says nothing of the one before it."""
    if isinstance(decision, NotRetried):
        return dict(headers)  # the attempt before it says what was sent
    told = _told(decision, attempt, scopes)
    return {**told, **headers} if isinstance(decision, Untouched) else {**headers, **told}


def of_failed(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request that was refused in the end; the figures are those of its last attempt."""
    if DONE not in headers:
        return dict(headers)
    _, *rest = headers[DONE].split("; ", 1)
    return {**headers, DECISION: FAILED, DONE: "; ".join((FAILED, *rest))}


def of_ignored(ignored: Sequence[str]) -> dict[str, str]:
    """Return the header that names which of the request's own settings its policy does not allow."""
    settings = [line.removeprefix("request: ") for line in ignored if line.startswith("request")]
    return {IGNORED: header_value(settings)} if settings else {}


def header_value(parts: Sequence[str]) -> str:
    """Return the parts as the value of a header: one line of at most 1,024 printable ASCII characters.

    A server closes the connection rather than send a header with a line break or a NUL.
    """
    value = ""
    for i, part in enumerate(parts):
        rest = f"; and {len(parts) - i:,} more"
        text = ("; " if i else "") + _ascii(part)
        if len(value) + len(text) + len(rest) > MOST_CHARS:
            return value + (rest if i else CUT)
        value += text
    return value


def _ascii(text: str) -> str:
    escaped = one_line(text).strip().encode("ascii", "backslashreplace").decode()
    return escaped if len(escaped) <= MOST_CHARS // 2 else escaped[: MOST_CHARS // 2 - len(CUT)] + CUT


def _told(decision: Decision, attempt: int, scopes: Sequence[str]) -> dict[str, str]:
    name, figures = outcome_of(decision, attempt), decision.figures
    words: list[str] = [name]
    told = {DECISION: name, ATTEMPTS: str(attempt + 1)}
    if scopes:
        told[POLICY] = header_value(scopes)
    if figures is not None and not isinstance(decision, Untouched):
        words.append(f"before={figures.tokens_before}; after={figures.tokens_after}")
        told |= {BEFORE: str(figures.tokens_before), AFTER: str(figures.tokens_after)}
    words += [f"{field}={tokens}" for field, tokens in output_limits_in(changes_of(decision)).items()]
    return {DONE: header_value(words), **told}
