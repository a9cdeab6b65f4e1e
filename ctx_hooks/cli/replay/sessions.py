"""Sessions of a history: the form in which the proxy's functions send each request, and the effect on its session."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import NamedTuple

from ctx_hooks.compaction.message_index import chain
from ctx_hooks.engine import engine
from ctx_hooks.engine.engine import Decided
from ctx_hooks.formats.fields import unmarked
from ctx_hooks.learning.attempts import Known
from ctx_hooks.request.request import Request, counted_history
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import Deadline, Timings
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens, to_provider
from ctx_hooks.tokens.usage import Billed

MOST_OPEN = 1_000
"""Sessions that may continue. The prefixes of one with 500 messages take about 100 KB in each way."""


class Sent(NamedTuple):
    """A request as it is sent.

    Attributes:
        prefixes: the digest of each of its prefixes, the shortest first.
        sizes: the local tokens of each, so that the last is the whole.
        rewrites: whether it does not share its prefix with the request before it, by a new compaction.
        is_changed: whether anything differs from what the client sent.
        rereads: how many calls of the newest answer repeat one whose result the model no longer saw.
    """

    prefixes: tuple[bytes, ...]
    sizes: tuple[int, ...]
    rewrites: bool = False
    is_changed: bool = False
    rereads: int = 0

    @property
    def tokens(self) -> LocalTokens:
        """The local tokens of the whole."""
        return LocalTokens(self.sizes[-1])

    def shared_tokens(self, earlier: set[bytes]) -> int:
        """Return the local tokens of the longest prefix that one of the earlier requests has."""
        return next((size for p, size in zip(reversed(self.prefixes), reversed(self.sizes), strict=True) if p in earlier), 0)


def without_markers(request: Request) -> Request:
    """Return a request without its cache markers, which clients such as Claude Code set anew in each request."""
    items = request.fields.get("messages")
    if not isinstance(items, list):
        return request
    return Request(request.format, {**request.fields, "messages": [unmarked(item) for item in items]})


def as_received(request: Request, counter: Counter) -> Sent:
    """Return a request as the client sent it; raises MalformedConversationError if it contains no conversation."""
    history = counted_history(request, counter)
    sizes = accumulate((m.tokens for m in history.index), initial=history.preamble_tokens)
    return Sent(chain(history.preamble_digest, history.index), tuple(sizes))


def as_sent(request: Request, received: Sent, to: Target, known: Known, counter: Counter) -> Sent:
    """Return a request as the plugin sends it, after a retry if the first attempt is refused."""
    if to.policy.mode == "off":
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
    """Return the request that a decision sends; `sent` if it changes nothing."""
    changes = decided.decision.changes
    if not changes:
        return sent
    made = as_received(Request(request.format, {**request.fields, **changes}), counter)
    rereads = sum(decided.attempt.asked_again.rereads.values()) or sent.rereads
    return made._replace(rewrites=decided.attempt.rewrites, is_changed=True, rereads=rereads)


@dataclass(slots=True)
class Bill:
    """The requests that were or would have been sent, and their cost. All tokens are the provider's.

    Attributes:
        requests: those that are answered.
        refused: those that exceed the window.
        compactions: how many of the sent ones begin with a new compaction.
        rereads: calls of the agent that repeat one whose result it no longer saw, in requests that are answered.
        input_tokens: the prompts of those that are answered.
        cached_tokens: the part of these that the provider's prompt cache serves.
        output_tokens: their answers, as far as the history states them.
        dollars: the price of those that are answered.
        unpriced: how many of these have no price.
    """

    requests: int = 0
    refused: int = 0
    compactions: int = 0
    rereads: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0

    def answer(self, billed: Billed, dollars: float | None) -> None:
        """Count a request that is answered."""
        self.requests += 1
        self.input_tokens += billed.input_tokens
        self.cached_tokens += billed.cached_tokens
        self.output_tokens += billed.output_tokens
        self.dollars += dollars or 0.0
        self.unpriced += dollars is None

    @property
    def cached_fraction(self) -> float | None:
        """The share of the prompts that comes from the provider's cache; None without any."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None


@dataclass(slots=True)
class Course:
    """A session without the plugin, or in one way.

    Attributes:
        bill: the figures of all sessions in this way.
        prefixes: the digests of all sent prefixes, which the provider's cache contains.
        newest_compaction: the prefix at the end of the newest compaction.
    """

    bill: Bill
    prefixes: set[bytes] = field(default_factory=set)
    newest_compaction: bytes = b""

    def send(self, sent: Sent, ratio: float, *, is_refused: bool) -> tuple[int, int] | None:
        """Count a request that is sent; return its tokens and those that the cache serves, None for one that is refused."""
        tokens = round(sent.tokens * ratio)
        if sent.rewrites and sent.prefixes[-1] != self.newest_compaction:
            self.bill.compactions += 1
            self.newest_compaction = sent.prefixes[-1]
        if is_refused:
            self.bill.refused += 1
            return None
        self.bill.rereads += sent.rereads
        shared = min(tokens, round(sent.shared_tokens(self.prefixes) * ratio))
        self.prefixes.update(sent.prefixes)
        return tokens, shared


@dataclass(slots=True, eq=False)
class Session:
    """One session.

    Attributes:
        courses: the session without the plugin, and in each way.
        keys: of its newest request: the name, and the digest.
        started: when that was sent.
    """

    courses: list[Course]
    keys: tuple[bytes, ...] = ()
    started: str = ""


class KnownSessions:
    """The sessions that may continue, by their names and newest requests; the least recently used ones are dropped."""

    def __init__(self) -> None:
        self._open: OrderedDict[bytes, Session] = OrderedDict()

    def of(self, name: str, chain: Sequence[bytes], begin: Callable[[], Session]) -> Session:
        """Return the session of a request.

        LiteLLM gives a request without a session an id of its own, so a continued session is also found by its beginning.

        Args:
            name: the session's name in the history; "" for none.
            chain: the digests of the request's prefixes, the shortest first.
            begin: makes a new one.
        """
        named = name.encode("utf-8", "surrogatepass")
        known = (key for key in (named, *reversed(chain[:-1])) if key in self._open)
        session = next((self._open[key] for key in known), None) or begin()
        self._forget(session)
        session.keys = tuple(filter(None, (named, chain[-1])))
        for key in session.keys:
            self._open[key] = session
            self._open.move_to_end(key)
        while len(self._open) > 2 * MOST_OPEN:
            old = next(iter(self._open.values()))
            self._forget(old)
            for course in old.courses:
                course.prefixes = set()
        return session

    def _forget(self, session: Session) -> None:
        for key in session.keys:
            if self._open.get(key) is session:
                del self._open[key]
