"""The most that an attempt may have, and on a retry what changes besides: decided before anything is compressed."""

from dataclasses import replace

from ctx_hooks.compaction.history import History
from ctx_hooks.learning.attempts import Attempt, Known
from ctx_hooks.overflow.retry_plan import RetryPlan, bytes_for_retry, lower_output, plan_of
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.tokens.units import LocalTokens, to_local


def plan_attempt(request: Request, history: History, to: Target, known: Known) -> RetryPlan | None:
    """Return the plan for this attempt: within the budget, and on a retry smaller than the refused request.

    None if a history that the provider keeps exceeds the window, and the plugin cannot reduce it further.
    """
    most, previous = _most_tokens(request, history, to, known), known.previous
    truncates = _truncates(request, history.tokens, most, known)
    if previous is None:
        # If the provider has named its limit, it will refuse a larger request: nothing would be saved for a retry.
        return RetryPlan(most, cut_newest=known.window.source == "learned", truncates=truncates)
    lowered = None
    if previous.overflow is not None and (previous.overflow.kind == "output_limit" or not previous.lowered):
        lowered = lower_output(previous.overflow, previous.output_tokens)
    plan = plan_of(to.attempt, to.policy.rescue_attempts, previous.sent_tokens, lowered)
    if plan.max_output_tokens is not None:  # with the budget of the refused attempt its messages become the same
        return replace(plan, most_tokens=max(most, plan.most_tokens))
    if truncates:
        return RetryPlan(most, cut_newest=True, truncates=True)
    if request.continues_stored_history and history.tokens <= most:
        return None
    cut_newest = plan.cut_newest or known.window.source in ("learned", "refusal")
    if history.tokens <= most:
        most = min(most, plan.most_tokens)
    # A request above the budget is compacted as the next one will be, so that the next one begins with the same text.
    said, most_bytes = previous.overflow, None
    if said is not None and said.kind == "bytes":
        most_bytes = bytes_for_retry(said, request.json_bytes({}), to.attempt)
    return replace(plan, most_tokens=max(LocalTokens(1), most), cut_newest=cut_newest, most_bytes=most_bytes)


def _most_tokens(request: Request, history: History, to: Target, known: Known) -> LocalTokens:
    """Return the budget of an attempt that is no retry."""
    most = known.budget_tokens(to.policy, request, history)
    if to.defers:
        most = known.whole_tokens(most)
    elif to.waits:
        most = max(most, known.window_less_error())
    return min(most, known.window_less_error()) if to.checked else most


def without_remedy(refused: Attempt, known: Known) -> str:
    """Return why no retry can help, "" if one may: a refusal of the output says nothing against the messages."""
    if not known.window.tokens:
        return "what only the provider sees of it exceeds the limit"
    said = refused.overflow
    if said is not None and said.kind == "output_limit" and lower_output(said, refused.output_tokens) is None:
        return "its output was refused, and no lower limit of it is known"
    return ""


def _truncates(request: Request, sent: LocalTokens, most: LocalTokens, known: Known) -> bool:
    """Whether the provider is asked to drop the oldest items of its stored history: only if necessary.

    The request's own items are new, and are not removed to make room for old ones.
    """
    can_drop = request.wire.has_items and request.continues_stored_history and not request.asks_for_truncation
    if not can_drop:
        return False
    if known.previous is not None:
        return not known.previous.truncates
    return known.stored_tokens > 0 and sent + to_local(known.stored_tokens, known.factor) > most
