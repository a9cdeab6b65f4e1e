"""The last attempt of each running request: a retry has to be smaller than it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ctx_hooks.compaction.summary.model_written import Choice
from ctx_hooks.conversation.model import Format
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Mode
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens, to_provider
from ctx_hooks.tokens.window import Window

RUNNING_REQUESTS = 10_000
"""Requests remembered at once, with refusals of the longest kind (2,000 characters) about 25 MB. The oldest is forgotten
first, and is then not retried."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: what was received and sent, what was assumed, and how it ended.

    Attributes:
        deployment: the key of what is learned of the deployment.
        model: the model whose vocabulary counts.
        tenant: who asked.
        format: the format of the request.
        received_tokens: the request as it came; None where its size alone was enough and nothing was counted.
        sent_tokens: what was sent of it; None likewise.
        window: the window that was fitted to.
        factor: the assumed provider tokens per local token.
        window_tokens: the window that configuration or LiteLLM state.
        number: 0 for the first attempt of a request; retries count from 1.
        first_tokens: what the first attempt of the request sent.
        output_tokens: the requested output, as it was sent.
        most_tokens: an upper bound of the request in any vocabulary, where it was not counted.
        guessed_tokens: how much of `sent_tokens` is a guess: media, reasoning and unknown parts.
        counts_all: False for a request with content that cannot be counted here, such as a stored history.
        lowered: whether the retry asks for less output than was refused.
        stored: whether part of the conversation lies with the provider.
        truncates: whether the provider is asked to drop the oldest items of what it keeps.
        failed: whether the attempt is over.
        spent: whether no retry could make the request smaller.
        overflow: what the provider's refusal said, if it was an overflow.
        refusal: the provider's own text.
        states_usage: False where the answer states none, so that any figure is LiteLLM's estimate.
        observed: whether the request was sent as it came, whatever was decided.
        decided_tokens: what would have been sent, where it is only observed.
        seen_tokens: as much of `received_tokens` as the request before this one of the same conversation had.
        rewrites: whether what was decided begins otherwise than the request before it.
        budget_tokens: what the request may have; None where it was not asked.
        milliseconds: what each phase of the decision took.
        request_id: the id that this process has given the request.
        choice: which form the newest compaction in what was decided has; None without one, and where no model writes
            summaries.

    >>> window = Window(ProviderTokens(200_000), "model_info")
    >>> sent = LocalTokens(40_000)
    >>> Attempt("id:claude", "claude", "", "anthropic", sent, sent, window, factor=1.3).sent_provider_tokens
    52000
    """

    deployment: str
    model: str
    tenant: str
    format: Format
    received_tokens: LocalTokens | None
    sent_tokens: LocalTokens | None
    window: Window
    factor: float
    window_tokens: ProviderTokens = ProviderTokens(0)
    number: int = 0
    first_tokens: LocalTokens | None = None
    output_tokens: ProviderTokens | None = None
    most_tokens: int = 0
    guessed_tokens: LocalTokens = LocalTokens(0)
    counts_all: bool = True
    lowered: bool = False
    stored: bool = False
    truncates: bool = False
    failed: bool = False
    spent: bool = False
    overflow: Overflow | None = None
    refusal: str = ""
    states_usage: bool = True
    observed: bool = False
    decided_tokens: LocalTokens | None = None
    seen_tokens: LocalTokens = LocalTokens(0)
    rewrites: bool = False
    budget_tokens: ProviderTokens | None = None
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    request_id: str = ""
    choice: Choice | None = None

    @property
    def mode(self) -> Mode:
        """Whether what was decided is done."""
        return "observe" if self.observed else "enforce"

    @property
    def sent_provider_tokens(self) -> ProviderTokens:
        """The estimate of what was sent; 0 where it was not counted."""
        return to_provider(self.sent_tokens or LocalTokens(0), self.factor)


class Attempts:
    """The last attempt of each running request, by an id that this process has given it. Thread-safe."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, Attempt] = OrderedDict()
        self._lock = threading.Lock()

    def sent(self, request_id: str, attempt: Attempt) -> None:
        """Note what is about to be sent; a request without an id could be taken for another, and is not remembered."""
        if not request_id:
            return
        with self._lock:
            before = self._last.get(request_id)
            first = before.first_tokens if before is not None else None
            self._last[request_id] = replace(attempt, first_tokens=first or attempt.sent_tokens)
            self._last.move_to_end(request_id)
            if len(self._last) > RUNNING_REQUESTS:
                self._last.popitem(last=False)

    def failed(self, request_id: str, overflow: Overflow | None, refusal: str = "") -> Attempt | None:
        """Note that the last attempt is over, and the overflow if it was one; return it, None when that was known.

        LiteLLM tells of one failure twice where it translates a request to another format.
        """
        with self._lock:
            attempt = self._last.get(request_id)
            if attempt is None or attempt.failed:
                return None
            self._last[request_id] = replace(attempt, overflow=overflow, failed=True, refusal=refusal)
            return self._last[request_id]

    def timed(self, request_id: str, milliseconds: Mapping[str, float]) -> None:
        """Note what each phase of the last decision about a request took."""
        with self._lock:
            attempt = self._last.get(request_id)
            if attempt is not None:
                self._last[request_id] = replace(attempt, milliseconds=milliseconds)

    def without_usage(self, request_id: str) -> Attempt | None:
        """Note that the answer to the last attempt states no usage, and return the attempt."""
        with self._lock:
            attempt = self._last.get(request_id)
            if attempt is not None:
                attempt = self._last[request_id] = replace(attempt, states_usage=False)
            return attempt

    def last(self, request_id: str) -> Attempt | None:
        """Return the last attempt of a request."""
        with self._lock:
            return self._last.get(request_id)

    def done(self, request_id: str) -> Attempt | None:
        """Forget a request that was answered, and return its last attempt."""
        with self._lock:
            return self._last.pop(request_id, None)
