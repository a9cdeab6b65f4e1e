"""What of a recorded request is sent, by the same functions as in the proxy."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import MessageStats, chain, digest_of
from ctx_hooks.engine import fitting
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.fields import unmarked
from ctx_hooks.learning.known import Known
from ctx_hooks.overflow.retry_plan import RetryPlan
from ctx_hooks.request.request import Request, counted_history
from ctx_hooks.request.target import Target
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens, to_provider


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
    def tokens(self) -> int:
        """The local tokens of the whole."""
        return self.sizes[-1]

    def shared_tokens(self, earlier: set[bytes]) -> int:
        """Return the local tokens of the longest prefix that one of the earlier requests has."""
        return next((size for p, size in zip(reversed(self.prefixes), reversed(self.sizes), strict=True) if p in earlier), 0)


def without_markers(request: Request) -> Request:
    """Return a request without the marks by which clients such as Claude Code say, in each anew, what is to be cached."""
    items = request.fields.get("messages")
    if not isinstance(items, list):
        return request
    return Request(request.format, {**request.fields, "messages": [unmarked(item) for item in items]})


def history_in(request: Request, counter: Counter, not_held: LocalTokens = LocalTokens(0)) -> History:
    """Return the history of a request.

    Args:
        request: what is recorded of it.
        counter: counts.
        not_held: local tokens that the client sent besides what is recorded, in front of it.

    Raises:
        MalformedConversationError: it holds no conversation.
    """
    found = counted_history(request, counter)
    return replace(found, preamble_tokens=LocalTokens(found.preamble_tokens + not_held)) if not_held else found


def as_received(history: History) -> Sent:
    """Return a request as the client sent it."""
    return _sent(history, history.index)


def as_sent(request: Request, history: History, to: Target, known: Known, counter: Counter) -> Sent:
    """Return a request as the plugin sends it, after the retry where the first attempt is refused."""
    if not to.policy.enabled:
        return as_received(history)
    newest = request.newest_turns(history.index, to.policy.max_turns)
    if newest is not request:
        beside = history.preamble_tokens - sum(counter.text(text) for text in request.preamble())
        history = history_in(newest, counter, LocalTokens(beside))
    most = known.budget_tokens(to.policy, request.least_output_tokens, history)
    if history.tokens <= most:
        return as_received(history)
    for cut_newest in (False, True):
        budget = fitting.budget_of(to, known, RetryPlan(most, cut_newest=cut_newest), counter)
        outcome = fitting.compressed(known, newest, history, budget, to)
        if outcome.fits or to_provider(outcome.tokens_after, known.factor) <= to.window.tokens:
            break
    messages = outcome.conversation.messages
    index = tuple(
        MessageStats(digest_of(item), counter.message(message, request.format), message.role, is_request=False)
        for item, message in zip(WIRE_FORMATS[request.format].write(outcome.conversation), messages, strict=True)
    )
    return _sent(history, index)._replace(rewrites=outcome.rewrites, is_changed=True)


def _sent(history: History, index: tuple[MessageStats, ...]) -> Sent:
    sizes = accumulate((m.tokens for m in index), initial=history.preamble_tokens)
    return Sent(chain(history.preamble_digest, index), tuple(sizes))
