"""The response headers: the decision about a request, and its own settings that the policy does not allow."""

from collections.abc import Mapping, Sequence

from ctx_hooks.runtime.warnings import one_line
from ctx_hooks.telemetry.events import DecisionEvent, FailureEvent, Outcome

DONE = "x-ctx-hooks"
"""The decision about the request, in words."""
MOST_CHARS = 1_024
"""Limit of one value. Clients and proxies refuse more than 8 to 64 KB of headers in all, mostly LiteLLM's."""


def with_decision(
    headers: Mapping[str, str], event: DecisionEvent, output_limits: Mapping[str, int], *, is_changed: bool
) -> dict[str, str]:
    """Return the headers with a decision about a request; one that is sent unchanged replaces no earlier headers."""
    words = [str(event.decision)]
    if is_changed and event.budget_tokens is not None and event.provider_tokens_before is not None:
        words.append(f"before={event.provider_tokens_before}; after={event.provider_tokens_after}")
    asked = f" of {event.requested_output_tokens}" if event.requested_output_tokens else ""
    words += [f"{field}={tokens}{asked}" for field, tokens in output_limits.items()]
    if is_changed and event.reason and event.decision in ("compressed", "retried"):
        words.append(f"reason={event.reason}")
    scopes = sorted(set(event.policy.values()))
    reported = {
        DONE: header_value(words),
        f"{DONE}-decision": event.decision,
        f"{DONE}-attempts": str(event.attempt + 1),
        **({f"{DONE}-policy": header_value(scopes)} if scopes else {}),
    }
    return {**headers, **reported} if is_changed else {**reported, **headers}


def of_unrecorded(outcome: Outcome, reason: str = "") -> dict[str, str]:
    """Return the headers of a request whose record has failed; `reason` names an exception, or is ""."""
    return {DONE: f"{outcome}; reason={reason}" if reason else outcome, f"{DONE}-decision": outcome}


def of_failed(headers: Mapping[str, str], event: FailureEvent) -> dict[str, str]:
    """Return the headers of a request that was finally refused, with the figures of its last attempt."""
    if DONE not in headers:
        return dict(headers)
    _, *rest = headers[DONE].split("; ", 1)
    return {**headers, f"{DONE}-decision": event.decision, DONE: "; ".join((event.decision, *rest))}


def of_ignored(ignored: Sequence[str]) -> dict[str, str]:
    """Return the header that names which of the request's own settings its policy does not allow."""
    settings = [line.removeprefix("request: ") for line in ignored if line.startswith("request")]
    return {f"{DONE}-ignored": header_value(settings)} if settings else {}


def header_value(parts: Sequence[str]) -> str:
    """Return the parts in one line of 1,024 printable ASCII characters at most: servers close the connection at others."""
    text = "; ".join(one_line(part).strip() for part in parts)
    return one_line(text.encode("ascii", "backslashreplace").decode(), MOST_CHARS)
