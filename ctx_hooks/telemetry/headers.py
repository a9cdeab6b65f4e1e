"""The response headers: what was done with a request, and what its caller asked for and may not have."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from ctx_hooks.decision import Decision, NotRetried, Untouched, changes_of
from ctx_hooks.request.output_limit import output_limits_in
from ctx_hooks.runtime.warnings import CUT, one_line
from ctx_hooks.telemetry.outcome import Outcome, outcome_of

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
MOST_BYTES = 4_000_000
"""Of all headers remembered: those of a thousand requests with the longest values, or of 30,000 with usual ones."""
FAILED: Outcome = "failed"
ENTRY_BYTES = 100
"""What a request's entry costs beside its texts: two maps' places and the text objects."""


class Headers:
    """The headers of each running request so far, by its id. Thread-safe.

    Only requests that the plugin treats have any: a proxy with the plugin switched off answers as one without it.
    """

    def __init__(self) -> None:
        self._headers: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._lock = threading.Lock()
        self.size_bytes = 0

    def note(self, request_id: str, decision: Decision, attempt: int = 0, scopes: Sequence[str] = ()) -> None:
        """Remember a decision; an untouched attempt says nothing of the one before it.

        Args:
            request_id: the request's id in this process.
            decision: what was decided.
            attempt: 0 for the first attempt of a request; retries count from 1.
            scopes: those that set a field of the policy.
        """
        if isinstance(decision, NotRetried):
            return  # the attempt before it says what was sent
        self._set(request_id, _told(decision, attempt, scopes), replace=not isinstance(decision, Untouched))

    def note_failed(self, request_id: str) -> None:
        """Remember that a request was refused in the end; the figures are those of its last attempt."""
        done = self.of(request_id).get(DONE)
        if done is not None:
            _, *rest = done.split("; ", 1)
            self._set(request_id, {DECISION: FAILED, DONE: "; ".join((FAILED, *rest))})

    def note_ignored(self, request_id: str, ignored: Sequence[str]) -> None:
        """Remember which of the request's own settings its policy does not allow."""
        settings = [line.removeprefix("request: ") for line in ignored if line.startswith("request")]
        if settings:
            self._set(request_id, {IGNORED: header_value(settings)})

    def of(self, request_id: str) -> dict[str, str]:
        """Return the headers of a request, none for one that the plugin did not treat."""
        with self._lock:
            return dict(self._headers.get(request_id, {}))

    def _set(self, request_id: str, headers: Mapping[str, str], *, replace: bool = True) -> None:
        if not request_id:
            return  # outside a proxy nobody asks for headers, and requests without an id could be taken for one another
        with self._lock:
            before = self._headers.pop(request_id, {})
            after = {**before, **headers} if replace else {**headers, **before}
            self._headers[request_id] = after
            self.size_bytes += _size_bytes(request_id, after) - (_size_bytes(request_id, before) if before else 0)
            while self.size_bytes > MOST_BYTES:
                self.size_bytes -= _size_bytes(*self._headers.popitem(last=False))


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


def _size_bytes(request_id: str, headers: dict[str, str]) -> int:
    return ENTRY_BYTES + len(request_id) + sum(map(len, headers.values()))


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
