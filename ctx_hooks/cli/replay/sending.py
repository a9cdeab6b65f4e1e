"""What of a recorded request is sent, by the same functions as in the proxy."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from ctx_hooks.compaction.message_index import chain
from ctx_hooks.engine import engine
from ctx_hooks.engine.decision import changes_of
from ctx_hooks.engine.engine import Decided
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.fields import unmarked
from ctx_hooks.learning.known import Known
from ctx_hooks.request.request import Request, counted_history
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.timings import Timings
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens, to_provider

ONE_WORD = " a"
"""One token of every vocabulary, however often it stands in a row."""


class Sent(NamedTuple):
    """A request as it is sent.

    Attributes:
        prefixes: the digest of each of its prefixes, the shortest first.
        sizes: the local tokens of each, so that the last is the whole.
        rewrites: whether it does not share its prefix with the request before it, by a new compaction.
        is_changed: whether anything differs from what the client sent.
    """

    prefixes: tuple[bytes, ...]
    sizes: tuple[int, ...]
    rewrites: bool = False
    is_changed: bool = False

    @property
    def tokens(self) -> LocalTokens:
        """The local tokens of the whole."""
        return LocalTokens(self.sizes[-1])

    def shared_tokens(self, earlier: set[bytes]) -> int:
        """Return the local tokens of the longest prefix that one of the earlier requests has."""
        return next((size for p, size in zip(reversed(self.prefixes), reversed(self.sizes), strict=True) if p in earlier), 0)


def without_markers(request: Request) -> Request:
    """Return a request without the marks by which clients such as Claude Code say, in each anew, what is to be cached."""
    items = request.fields.get("messages")
    if not isinstance(items, list):
        return request
    return Request(request.format, {**request.fields, "messages": [unmarked(item) for item in items]})


def with_not_held(request: Request, tokens: LocalTokens) -> Request:
    """Return a request with so many more local tokens in front, for what its client sent besides what is recorded."""
    name = WIRE_FORMATS[request.format].system_field
    text = f"{request.fields.get(name) or ''}{ONE_WORD * tokens}"
    return Request(request.format, {**request.fields, name: text}) if tokens else request


def as_received(request: Request, counter: Counter) -> Sent:
    """Return a request as the client sent it; raises MalformedConversationError where it holds no conversation."""
    history = counted_history(request, counter)
    sizes = accumulate((m.tokens for m in history.index), initial=history.preamble_tokens)
    return Sent(chain(history.preamble_digest, history.index), tuple(sizes))


def as_sent(request: Request, received: Sent, to: Target, known: Known, counter: Counter) -> Sent:
    """Return a request as the plugin sends it, after a retry where the first attempt is refused."""
    if not to.policy.enabled:
        return received
    decided = engine.decide(request, to, known, Deadline(), Timings())
    sent = _changed(request, received, decided, counter)
    if to_provider(sent.tokens, known.factor) > known.window.tokens and to.policy.rescue_attempts:
        again = engine.decide(
            request, replace(to, attempt=1), replace(known, previous=decided.attempt), Deadline(), Timings()
        )
        return _changed(request, sent, again, counter)
    return sent


def _changed(request: Request, sent: Sent, decided: Decided, counter: Counter) -> Sent:
    """Return what a decision sends of a request; `sent` where it changes nothing."""
    changes = changes_of(decided.decision)
    if not changes:
        return sent
    made = as_received(Request(request.format, {**request.fields, **changes}), counter)
    return made._replace(rewrites=decided.attempt.rewrites, is_changed=True)
