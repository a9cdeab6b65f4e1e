"""Narrows the Router's choice in a group, if the policy prefers deployments that hold the whole request."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from ctx_hooks.compaction.history import History
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.learning.attempts import Known, known_of
from ctx_hooks.litellm_compat.deployments import filter_key_of, listed_deployment, narrows_itself
from ctx_hooks.request import target
from ctx_hooks.request.request import Request, counted_history
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline
from ctx_hooks.serving.deciding import LOOP_BYTES
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.tokens.counter import Counter, VocabularyName, vocabulary_of
from ctx_hooks.tokens.units import ProviderTokens, to_local


class Option(NamedTuple):
    """A deployment that the Router may choose, with its Router entry; it may have `refused` this request."""

    entry: Mapping[str, Any]
    to: Target
    known: Known
    refused: bool = False

    @property
    def counts_by(self) -> tuple[VocabularyName, float]:
        """The vocabulary, and the weight of other scripts, for counting a request to it."""
        return vocabulary_of(self.to.model), self.known.other_weight


async def preferred(request: Request, listed: Sequence[Mapping[str, Any]], flow: RequestFlow) -> Sequence[Mapping[str, Any]]:
    """Return the deployments for the Router's choice: all, unless the policy narrows them."""
    # Only one deployment has a history that the provider keeps; only the history's id names it.
    if request.continues_stored_history or narrows_itself(request.call):
        return listed
    at = partial(target.of_call, request.call, flow.policies, request.call.model_group)
    targets = [at(listed_deployment(entry)) for entry in listed]
    if any(to.policy.mode != "enforce" or to.policy.deployment_choice != "holds_request" for to in targets):
        return listed
    previous, now = flow.running.of(request.call.request_id).attempts.last(), time.time()
    refused = previous.to.deployment if previous is not None and previous.overflow is not None else None
    options = [
        Option(entry, to, known_of(to, await flow.learned.of(to.deployment), now), to.deployment == refused)
        for entry, to in zip(listed, targets, strict=True)
    ]
    output_tokens = request.max_output_tokens
    budgets = [option.known.uncounted_budget_tokens(option.to.policy, output_tokens) for option in options]
    most_tokens = request.most_tokens(max(LOOP_BYTES, *budgets))
    if most_tokens <= min(budgets) and not any(option.refused for option in options):
        return listed
    if len({option.known.window.tokens for option in options}) == 1:
        return listed
    deadline = Deadline(targets[0].policy.compression_timeout_seconds)
    # A request that cannot be read or counted in time fails the same way at its attempt, which reports it.
    with suppress(CompressionTimeoutError, MalformedConversationError):
        best = await flow.deciding.off_loop(targets[0], most_tokens, lambda: best_of(request, options, deadline), deadline)
        return [option.entry for option in best]
    return listed


def best_of(request: Request, options: Sequence[Option], deadline: Deadline) -> Sequence[Option]:
    """Return the options that hold the whole request; if none does, those with the largest window.

    This applies within each set of options that the Router's later filters treat alike, so that each filter keeps one.

    Raises:
        MalformedConversationError: the request has no conversation.
        CompressionTimeoutError: the deadline has passed.
    """
    histories: dict[tuple[VocabularyName, float], History] = {}
    if not request.is_too_large:
        counts = {option.counts_by for option in options}
        histories = {(name, weight): counted_history(request, Counter(name, deadline, weight)) for name, weight in counts}
    # Guessed tokens include images; an uncounted request may have images too.
    may_hold_images = not histories or any(m.guessed_tokens for history in histories.values() for m in history.index)
    filtered_alike: dict[str, list[Option]] = defaultdict(list)
    for option in options:
        filtered_alike[filter_key_of(option.entry, may_hold_images=may_hold_images)].append(option)
    best: list[Option] = []
    for alike in filtered_alike.values():
        largest = max(option.known.window.tokens for option in alike)
        holding = [option for option in alike if _holds(request, option, histories.get(option.counts_by))]
        best += holding or [option for option in alike if option.known.window.tokens == largest]
    return best


def _holds(request: Request, option: Option, history: History | None) -> bool:
    """Whether the request fits unchanged; without a `history` it is too large for every deployment.

    The requested output has to fit beside it, or as much of it as answers have needed: elsewhere it need not be lowered.
    """
    if history is None or option.refused:
        return False
    known, asked = option.known, request.max_output_tokens or ProviderTokens(0)
    needed = min(asked, known.answer_tokens or asked) if known.window.holds_output else 0
    budget = known.budget_tokens(option.to.policy, request, history)
    return history.tokens <= min(budget, to_local(ProviderTokens(known.window.tokens - needed), known.factor))
