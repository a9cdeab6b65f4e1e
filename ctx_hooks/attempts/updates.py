"""Pure functions that turn an attempt and its answer or refusal into observations.

A refusal teaches only if the whole sent request was counted here, and only figures that are plausible beside that count;
without a figure, the sent size. If not all was counted, a limit that the provider names with its own count applies to the
refused tenant; so does a rate limit that a single request exceeds.
"""

import math

from ctx_hooks.attempts.attempt import Attempt
from ctx_hooks.attempts.observations import (
    ANYONE,
    LARGEST_OTHER_RATIO,
    LARGEST_RATIO,
    LEAST_LIMIT_TOKENS,
    LEAST_RATIO,
    NOTHING,
    OTHERS_FLOOR_FRACTION,
    DeploymentStats,
    Key,
    Kind,
    Observation,
    Seen,
    Shown,
    ratios_after,
)
from ctx_hooks.overflow.patterns.other_errors import RATE_TOO_LARGE
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import limit_for_retry
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens
from ctx_hooks.tokens.usage import Billed

OTHER_FRACTION = 0.2
"""A request with at least this share of other scripts shows their ratio; any other shows the ratio of Latin words."""
LEAST_OTHER_FRACTION = 0.05
"""With a smaller share, other scripts cannot explain more tokens than expected."""
MOST_GUESSED_FRACTION = 0.2
"""A request with a larger share of images or files shows nothing about its text's ratio."""
BUDGET_FACTOR = 1.087
"""A window of this many times an accepted size has that size as its budget, with the usual reserve of 8 %."""
CONTRADICTING_FACTOR = 1.25
"""A size accepted earlier that exceeds a refused one by more is of another window, or was counted otherwise."""
FILLED_FRACTION = 0.75
"""A compaction is near or just made, so a larger limit changes few prompts: after a request of at least this share of its
budget, or one that begins with a new compaction."""
CAP_UNITS = (1_000, 1_024)
"""Caps on the output are multiples of one of them: an answer of such a length shows the cap."""
LARGEST_SHARE = 0.9
"""Of a refused size: a limit so near to it is not raised, because the next refusal would cost more than it shows."""


def of_answer(stats: DeploymentStats, attempt: Attempt, provider_tokens: ProviderTokens, now: float) -> Shown:
    """Return the observations of an answer that arrived `now`, in epoch seconds."""
    shown: dict[Key, Observation] = {}
    if attempt.sent_tokens is not None and not attempt.uncounted.holds_any and _is_mostly_text(attempt):
        seen = stats.seen_by(attempt.to.tenant, now)
        shown = {**_larger_limit(seen, attempt, now), **_ratio(seen, attempt, provider_tokens, now)}
    ratios = shown.get(("ratios", attempt.to.tenant))
    shown |= of_answered_retry(stats, attempt, now, ratios.values[0] if ratios else None)
    # Only tokens of the sent request show others what is accepted. The provider bills its own additions too, such as the
    # pages of a search, which are in no window, or the sum over several calls, which may exceed the stated window.
    most = attempt.most_tokens if attempt.sent_tokens is None else _most_tokens(attempt)
    if not attempt.uncounted.holds_any and provider_tokens <= min(most, attempt.to.window.tokens):
        shown["accepted", ANYONE] = Observation((provider_tokens,), now)
    return shown


def of_answered_retry(stats: DeploymentStats, attempt: Attempt, now: float, factor: float | None = None) -> Shown:
    """Return the limit that the refusal before an answered retry claims: the retry has kept to it.

    A guess becomes what the retry has kept to, so that the conversation's next request continues its text, by the `factor`
    that applies from now on if the answer shows another.
    """
    refused = attempt.limits.previous
    overflow = refused.overflow if refused is not None else None
    if refused is None or overflow is None or refused.to.deployment != attempt.to.deployment:
        return {}
    shown: dict[Key, Observation] = {}
    for key, observation in of_refusal(stats, refused, overflow, now, is_confirmed=True).items():
        values = observation.values
        if key[0] == "limit" and values[1]:
            scale = (factor or attempt.limits.factor) / attempt.limits.factor
            ceiling = overflow.limit_tokens or values[1] * scale
            values = (min(ceiling, attempt.limits.window.tokens * scale), ceiling, values[2])
        known = stats.observations.get(key)
        if key[0] in ("limit", "output_limit") and (known is None or known.values != values):
            shown[key] = Observation(values, now)
    return shown


def cut_total(stats: DeploymentStats, attempt: Attempt, billed: Billed, now: float) -> ProviderTokens | None:
    """Return the total at which an answer ended with fewer tokens than it asked for; None if a cap may have ended it."""
    answer, total = billed.output_tokens, ProviderTokens(billed.input_tokens + billed.output_tokens)
    is_cap = any(min(answer % unit, -answer % unit) <= 1 for unit in CAP_UNITS)
    least = max(LEAST_LIMIT_TOKENS, stats.seen_by(attempt.to.tenant, now).own.get("accepted", NOTHING).values[0])
    most = attempt.most_tokens if attempt.sent_tokens is None else _most_tokens(attempt)
    is_counted = not attempt.uncounted.holds_any and billed.input_tokens <= min(most, attempt.to.window.tokens)
    ended = answer < (attempt.output_tokens or 0) and least <= total < attempt.limits.window.tokens
    return total if is_counted and ended and not is_cap else None


def of_refusal(
    stats: DeploymentStats, attempt: Attempt, overflow: Overflow, now: float, *, is_confirmed: bool = False
) -> Shown:
    """Return the observations of an overflow: the limit that it names, else that the sent size is too long.

    Nothing if its figures and the local count cannot both be right. One refusal cannot show a limit below a size that the
    deployment has accepted, or below half of a known window, and an error that quotes an overflow shows nothing: the quoted
    words may be the caller's. The answer to a retry that keeps to them confirms them. What only observes needs no proof.
    """
    if attempt.sent_tokens is None or overflow.kind == "bytes" or (overflow.quoted and not is_confirmed):
        return {}
    tenant, uncounted, window_tokens = attempt.to.tenant, attempt.uncounted, attempt.to.window.tokens
    seen = stats.seen_by(tenant, now)
    size_shows = not uncounted.holds_any or (
        uncounted.holds_hosted and overflow.limit_tokens is None and overflow.kind == "input"
    )
    if overflow.pattern == RATE_TOO_LARGE.name or not size_shows or not _is_mostly_text(attempt):
        shown = _own_limit(attempt, overflow, now)
    elif overflow.kind == "output_limit":
        limit = overflow.limit_tokens
        return {("output_limit", tenant): Observation((limit,), now)} if limit else {}
    else:
        shown = _counted_limit(seen, attempt, overflow, now)
    if ("limit", tenant) in shown and not is_confirmed and attempt.to.policy.mode == "enforce":
        usual = min(window_tokens, seen.limit_tokens(window_tokens) or window_tokens)
        usual = usual if attempt.to.window.source != "default" else ProviderTokens(0)
        least = max(seen.own.get("accepted", NOTHING).values[0], usual * OTHERS_FLOOR_FRACTION)
        tokens, ceiling, _ = shown["limit", tenant].values
        if (ceiling or tokens) < least:
            del shown["limit", tenant]
    return shown


def _counted_limit(seen: Seen, attempt: Attempt, overflow: Overflow, now: float) -> dict[Key, Observation]:
    """Return the limit and the ratio that the refusal of a request shows which was counted whole."""
    tenant, limit = attempt.to.tenant, overflow.limit_tokens
    given = None if overflow.at_least else overflow.input_tokens
    least_tokens = (attempt.latin_tokens + attempt.other_tokens) * LEAST_RATIO
    if overflow.input_tokens and not (least_tokens if given else 0) <= overflow.input_tokens <= _most_tokens(attempt):
        return {}
    shown: dict[Key, Observation] = {}
    refused = attempt.sent_provider_tokens
    if given:
        exceeds = given > refused * (1 + ESTIMATE_ERROR_FRACTION)
        shown |= _ratio(seen, attempt, given, now, LEAST_OTHER_FRACTION if exceeds else OTHER_FRACTION)
    if overflow.kind == "input_plus_output":
        refused = ProviderTokens(refused + (attempt.output_tokens or 0))
    if limit is not None and not LEAST_LIMIT_TOKENS <= limit <= refused * LARGEST_RATIO:
        return shown
    if limit is not None and (given is not None or refused > limit):
        shown["limit", tenant] = Observation((limit, 0 if given is not None else limit, 1), now)
    elif refused >= 2 * LEAST_LIMIT_TOKENS:
        # Without the provider's count, nothing but the refusal itself shows that the local count is too low.
        accepted = seen.own.get("accepted", NOTHING).values[0]
        guess: float = limit_for_retry(overflow, refused, 1)
        if accepted <= refused * CONTRADICTING_FACTOR:
            guess = max(guess, accepted * BUDGET_FACTOR)
        shown["limit", tenant] = Observation((min(guess, refused), refused, 1), now)
    return shown


def _own_limit(attempt: Attempt, overflow: Overflow, now: float) -> dict[Key, Observation]:
    """Return a limit for the refused tenant only: a rate limit, or one named with the provider's own count."""
    limit, given = overflow.limit_tokens or 0, overflow.input_tokens or 0
    if overflow.pattern == RATE_TOO_LARGE.name:
        plausible = limit <= attempt.sent_provider_tokens * LARGEST_RATIO
    else:
        plausible = limit < given and overflow.kind != "output_limit"
    if not plausible or limit < LEAST_LIMIT_TOKENS:
        return {}
    return {("limit", attempt.to.tenant): Observation((limit, 0, 0), now)}


def _larger_limit(seen: Seen, attempt: Attempt, now: float) -> dict[Key, Observation]:
    """Return a larger limit, half the way to the refused size, if an answer shows that this is possible."""
    limit, budget = seen.own.get("limit"), attempt.budget_tokens
    if limit is None or budget is None or attempt.to.attempt:
        return {}  # after a retry the conversation's next request continues its text, within the same limit
    tokens, ceiling, is_shared = limit.values
    fills = attempt.rewrites or attempt.sent_provider_tokens >= FILLED_FRACTION * budget
    if not fills or tokens >= ceiling * LARGEST_SHARE or attempt.limits.window.tokens < int(tokens):
        return {}
    return {("limit", attempt.to.tenant): Observation((math.sqrt(tokens * ceiling), ceiling, is_shared), now)}


def _ratio(
    seen: Seen, attempt: Attempt, provider_tokens: ProviderTokens, now: float, least: float = OTHER_FRACTION
) -> dict[Key, Observation]:
    """Return the ratio that a count shows: of other scripts if their share is at least `least`, else of the whole."""
    if attempt.uncounted.holds_unbilled and provider_tokens <= attempt.sent_provider_tokens:
        return {}  # without the sealed reasoning a count is a lower bound
    kind: Kind = "ratios"
    local = attempt.sent_tokens or LocalTokens(0)
    if attempt.other_tokens >= max(1, least * (attempt.latin_tokens + attempt.other_tokens)):
        kind, local = "other_ratios", attempt.other_tokens
        provider_tokens = ProviderTokens(int(provider_tokens - attempt.latin_tokens * attempt.limits.factor))
    before = seen.own[kind].values if kind in seen.own else ()
    after = ratios_after(before, local, provider_tokens, is_bound=kind == "other_ratios")
    return {} if after == before else {(kind, attempt.to.tenant): Observation(after, now)}


def _most_tokens(attempt: Attempt) -> float:
    """Return the most provider tokens that any tokenizer has for the sent request."""
    return attempt.latin_tokens * LARGEST_RATIO + attempt.other_tokens * LARGEST_OTHER_RATIO


def _is_mostly_text(attempt: Attempt) -> bool:
    return attempt.guessed_tokens <= MOST_GUESSED_FRACTION * (attempt.sent_tokens or 0)
