"""Pure functions that turn an attempt and its answer or refusal into observations.

A refusal teaches only if the whole sent request was counted here, and only figures that are plausible beside that count.
Without a figure it teaches the sent size, also beside calls of hosted tools: the texts that these read are not in the
window. If not all was counted, a limit that the provider names with its own count applies to the refused tenant; so does a
rate limit that a single request exceeds.
"""

import math
from collections.abc import Mapping
from typing import TypeAlias

from ctx_hooks.learning.attempts import OTHERS_FLOOR_FRACTION, Attempt
from ctx_hooks.learning.calibration import (
    LARGEST_OTHER_RATIO,
    LARGEST_RATIO,
    LEAST_OTHER_FRACTION,
    LEAST_RATIO,
    OTHER_FRACTION,
    observed,
)
from ctx_hooks.learning.stats import (
    ACCEPTED,
    ANYONE,
    LEAST_LIMIT_TOKENS,
    NOTHING,
    UNLIMITED,
    DeploymentStats,
    Key,
    Kind,
    Observation,
    Seen,
    on_grid,
)
from ctx_hooks.overflow.patterns.other_errors import RATE_TOO_LARGE
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import limit_for_retry
from ctx_hooks.telemetry.events import LimitEvent, TruncationEvent
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens
from ctx_hooks.tokens.usage import Billed

Shown: TypeAlias = Mapping[Key, Observation]
"""The observations of one answer or refusal."""

LEAST_LOW_TOKENS = 1_024
"""Below this many provider tokens the fixed cost of a request is a large part, and a share of them shows nothing."""
USUAL_TOKEN_BYTES = 8
"""Few texts have more bytes a token; a base64 image has, and then requests are counted in vain until a larger bill."""
LOW_BILL_FRACTION = 0.6
"""Provider tokens below this share of the estimate are odd: the count of a known vocabulary is right within a fifth."""
GROWTH_FRACTION = 0.15
"""If requests grew by at least this while their provider tokens stayed the same, the provider truncated them."""
STILL_FRACTION = 0.02
"""Provider tokens that move less than this count as the same."""
CLAIMED: tuple[Kind, ...] = ("limit", "own_limit", "refused", "output_limit")
"""The limits that a refusal claims."""
CAP_UNITS = (1_000, 1_024)
"""Caps on the output are multiples of one of them: an answer of such a length shows the cap."""
MOST_GUESSED_FRACTION = 0.2
"""A request with a larger share of images or files shows nothing about its text's ratio."""
BUDGET_FACTOR = 1.087
"""A window of this many times an accepted size has that size as its budget, with the usual reserve of 8 %."""
CONTRADICTING_FACTOR = 1.25
"""A size accepted earlier that exceeds a refused one by more is of another window, or was counted otherwise."""
FILLED_FRACTION = 0.75
"""A compaction is near or just made, so a larger limit changes few prompts: after a request of at least this share of its
budget, or one that begins with a new compaction."""
LARGEST_SHARE = 0.9
"""Of a refused size: a limit so near to it is not raised, because the next refusal would cost more than it shows."""


def of_answer(
    stats: DeploymentStats,
    attempt: Attempt,
    provider_tokens: ProviderTokens,
    now: float,
) -> Shown:
    """Return the observations of an answer that arrived `now`, in epoch seconds."""
    tenant = attempt.to.tenant
    seen = stats.seen_by(tenant, now)
    shown: dict[Key, Observation] = {}
    if attempt.sent_tokens is None:
        if provider_tokens >= LEAST_LOW_TOKENS and provider_tokens * USUAL_TOKEN_BYTES < attempt.most_tokens:
            shown["low_bill", tenant] = Observation((0, provider_tokens), now)
    else:
        sent_before, billed_before = (*seen.own.get("low_bill", NOTHING).values, 0, 0)[:2]
        is_low = _is_low(attempt, provider_tokens)
        grew = 0 < sent_before * (1 + GROWTH_FRACTION) <= attempt.sent_provider_tokens
        if is_low and grew and abs(provider_tokens - billed_before) <= STILL_FRACTION * billed_before:
            # Ollama silently reads only a part of a request. Fewer tokens that grow show a better vocabulary.
            return {("limit", tenant): Observation((max(provider_tokens, LEAST_LIMIT_TOKENS),), now)}
        if is_low and not grew:
            if not 0 < sent_before <= attempt.sent_provider_tokens:
                shown["low_bill", tenant] = Observation((attempt.sent_provider_tokens, provider_tokens), now)
        elif not attempt.uncounted.holds_any and _mostly_text(attempt):
            shown |= _larger_limit(seen, attempt, now)
            if 0 < billed_before * (1 + STILL_FRACTION) < provider_tokens:  # it was not odd: that request had an image, say
                shown["low_bill", tenant] = Observation((0, 0), now)
            shown |= _ratio(seen, attempt, provider_tokens, now)
    shown |= of_answered_retry(stats, attempt, now)
    if _was_counted(attempt, provider_tokens):
        accepted = zip(ACCEPTED, (provider_tokens, attempt.output_tokens or 0), strict=True)
        shown |= {(kind, ANYONE): Observation((tokens,), now) for kind, tokens in accepted}
    return shown


def of_answered_retry(stats: DeploymentStats, attempt: Attempt, now: float) -> Shown:
    """Return the observations of the refusal before a retry that is answered, if that refusal was only a claim."""
    refused = attempt.known.previous
    if refused is None or refused.overflow is None or refused.to.deployment != attempt.to.deployment:
        return {}
    own = stats.seen_by(attempt.to.tenant, now).own
    shown_at = max((own[kind].at for kind in CLAIMED if kind in own), default=0.0)
    is_claim = refused.overflow.quoted or own.get("claimed", NOTHING).at > shown_at
    return of_refusal(stats, refused, refused.overflow, now) if is_claim else {}


def believed_of_refusal(stats: DeploymentStats, attempt: Attempt, overflow: Overflow, now: float) -> Shown:
    """Return the observations of an overflow, with only its claim to a limit that one refusal cannot show.

    Such a limit is below a size that the deployment has accepted, or below half of its window. A second request that is
    refused for no lower limit shows it, and so does the answer to a retry that keeps to it. An error that quotes an overflow
    has no such answer: the retry has the quoted field too.
    """
    if overflow.quoted or overflow.kind == "bytes":
        return {}
    shown, tenant, window = of_refusal(stats, attempt, overflow, now), attempt.to.tenant, attempt.to.window.tokens
    seen = stats.seen_by(tenant, now)
    kind = next((kind for kind in CLAIMED if (kind, tenant) in shown), None)
    if kind is None:
        return shown
    limit, is_output = shown[kind, tenant].values[0], kind == "output_limit"
    limit = attempt.sent_provider_tokens if kind == "refused" else limit
    accepted = seen.own.get("accepted_output" if is_output else "accepted_input", NOTHING).values[0]
    usual = 0 if is_output else min(window, seen.limit_tokens(window, OTHERS_FLOOR_FRACTION, attempt.to.model) or window)
    before, *others = seen.own.get("claimed", NOTHING).values
    is_second = not attempt.to.attempt and 0 < before <= limit and others == [is_output, 0]
    if limit >= max(accepted, usual * OTHERS_FLOOR_FRACTION) or is_second:
        return shown
    rest = {key: o for key, o in shown.items() if key[0] not in CLAIMED}
    return {**rest, ("claimed", tenant): Observation((limit, is_output, 0), now)}


def of_cut_answer(seen: Seen, attempt: Attempt, billed: Billed, now: float) -> Shown:
    """Return the observations of an answer that ended with fewer tokens than it asked for, at the end of the window.

    A provider's own cap on the output ends answers too, so two answers of different lengths have to end at the same total.
    """
    answer, total = billed.output_tokens, ProviderTokens(billed.input_tokens + billed.output_tokens)
    is_cap = any(min(answer % unit, -answer % unit) <= 1 for unit in CAP_UNITS)
    least = max(LEAST_LIMIT_TOKENS, seen.own.get("accepted_input", NOTHING).values[0])
    is_within = least <= total < attempt.known.window.tokens and _was_counted(attempt, billed.input_tokens)
    if is_cap or not is_within or not answer < (attempt.output_tokens or 0):
        return {}
    before, answer_before = (*seen.own.get("claimed", NOTHING).values, 0, 0)[:3:2]
    same = answer_before > 0 and math.isclose(before, total, rel_tol=STILL_FRACTION / 10)
    shown: dict[Key, Observation] = {("claimed", attempt.to.tenant): Observation((total, 0, answer), now)}
    if same and not math.isclose(answer_before, answer, rel_tol=STILL_FRACTION):
        shown["own_limit", attempt.to.tenant] = Observation((total,), now)
    return shown


def of_refusal(stats: DeploymentStats, attempt: Attempt, overflow: Overflow, now: float) -> Shown:
    """Return the observations of a true overflow: the limit that it names, else that the sent size is too long.

    Return both if the sent size is within the limit by the local count: without the provider's count, nothing else shows
    that the local one is too low. Return nothing if its figures and the local count cannot both be right.
    """
    if attempt.sent_tokens is None:
        return {}
    tenant, limit, given = attempt.to.tenant, overflow.limit_tokens, overflow.input_tokens
    uncounted = attempt.uncounted
    size_shows = not uncounted.holds_any or (uncounted.holds_hosted and limit is None and overflow.kind == "input")
    if overflow.pattern == RATE_TOO_LARGE.name or not size_shows or not _mostly_text(attempt):
        return _own_limit(attempt, overflow, now)
    if overflow.kind == "output_limit":
        return {("output_limit", tenant): Observation((limit,), now)} if limit else {}
    least_tokens = 0 if overflow.at_least else (attempt.latin_tokens + attempt.other_tokens) * LEAST_RATIO
    if given and not least_tokens <= given <= _most_tokens(attempt):
        return {}
    given = None if overflow.at_least else given
    seen = stats.seen_by(tenant, now)
    shown: dict[Key, Observation] = {}
    if given:
        exceeds = given > attempt.sent_provider_tokens * (1 + ESTIMATE_ERROR_FRACTION)
        shown |= _ratio(seen, attempt, given, now, LEAST_OTHER_FRACTION if exceeds else OTHER_FRACTION)
    refused, output = attempt.sent_provider_tokens, 0
    if overflow.kind == "input_plus_output":
        output = attempt.output_tokens or 0
        refused = ProviderTokens(refused + output)
    plausible = limit is None or LEAST_LIMIT_TOKENS <= limit <= refused * LARGEST_RATIO
    if limit is not None and plausible:
        shown["limit", tenant] = Observation((limit,), now)
    within = limit is None or (given is None and refused <= limit)
    if plausible and within and refused >= 2 * LEAST_LIMIT_TOKENS:
        accepted = seen.own.get("accepted_input", NOTHING).values[0]
        guess: float = limit_for_retry(overflow, refused, refused, 1)
        if accepted <= refused * CONTRADICTING_FACTOR:
            guess = max(guess, accepted * BUDGET_FACTOR)
        rounded = on_grid(refused)
        latin = attempt.latin_tokens + output / attempt.known.factor
        sizes = (tokens * rounded / refused for tokens in (latin, attempt.other_tokens))
        shown["refused", tenant] = Observation((*sizes, min(1.0, guess / rounded)), now)
    return shown


def _own_limit(attempt: Attempt, overflow: Overflow, now: float) -> Shown:
    """Return a limit for the refused tenant only: a rate limit, or one named with the provider's own count."""
    limit, given = overflow.limit_tokens or 0, overflow.input_tokens or 0
    if overflow.pattern == RATE_TOO_LARGE.name:
        plausible = limit <= attempt.sent_provider_tokens * LARGEST_RATIO
    else:
        plausible = limit < given and overflow.kind != "output_limit"
    if not plausible or limit < LEAST_LIMIT_TOKENS:
        return {}
    return {("own_limit", attempt.to.tenant): Observation((limit,), now)}


def truncation(shown: Shown, attempt: Attempt, provider_tokens: ProviderTokens) -> TruncationEvent | None:
    """Return the event if an answer shows that the request was too long but was not refused.

    Either the provider read only a part of it, or it read more than the configured window.
    """
    to, window = attempt.to, attempt.known.window
    exceeds = window.source not in ("learned", "refusal") and provider_tokens > window.tokens
    if not exceeds and ("limit", to.tenant) not in shown:
        return None
    figures = attempt.sent_provider_tokens, provider_tokens, window.tokens
    return TruncationEvent("silent_truncation", to.deployment, *figures, to.request_id, to.policy.mode)


def limit_learned(shown: Shown, attempt: Attempt) -> LimitEvent | None:
    """Return the event of a limit among the observations."""
    for kind in ("limit", "refused", "output_limit"):
        found = shown.get((kind, attempt.to.tenant))
        if found is not None and (kind != "refused" or attempt.overflow is not None):
            to, limit = attempt.to, ProviderTokens(int(found.values[0]))
            limit = attempt.sent_provider_tokens if kind == "refused" else limit
            return LimitEvent("limit_learned", to.deployment, kind, limit, to.window.tokens, to.request_id, to.policy.mode)
    return None


def _larger_limit(seen: Seen, attempt: Attempt, now: float) -> dict[Key, Observation]:
    """Return a larger share of a refused size, half the way to all of it, if an answer shows that this is possible."""
    tenant, window, budget = attempt.to.tenant, attempt.known.window, attempt.budget_tokens
    latin, other, share = (*seen.own.get("refused", UNLIMITED).values, 0.0, 1.0)[:3]
    if share >= LARGEST_SHARE or budget is None or attempt.to.attempt:
        return {}  # after a retry the conversation's next request continues its text, within the same limit
    fills = attempt.rewrites or attempt.sent_provider_tokens >= FILLED_FRACTION * budget
    is_current = window.tokens >= int(seen.below_refused(seen.own, attempt.to.model))
    return {("refused", tenant): Observation((latin, other, math.sqrt(share)), now)} if fills and is_current else {}


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
        provider_tokens = ProviderTokens(int(provider_tokens - attempt.latin_tokens * attempt.known.factor))
    before = seen.own[kind].values if kind in seen.own else ()
    after = observed(before, local, provider_tokens, is_bound=kind == "other_ratios")
    return {} if after == before else {(kind, attempt.to.tenant): Observation(after, now)}


def _most_tokens(attempt: Attempt) -> float:
    """Return the most provider tokens that any tokenizer has for the sent request."""
    return attempt.latin_tokens * LARGEST_RATIO + attempt.other_tokens * LARGEST_OTHER_RATIO


def _was_counted(attempt: Attempt, provider_tokens: ProviderTokens) -> bool:
    """Whether provider tokens count only the sent request: only these show others the accepted size.

    The provider bills its own additions too, such as the pages of a search, which are in no window. It may also bill the sum
    over several calls, which may exceed the stated window.
    """
    sent = attempt.sent_tokens
    if attempt.uncounted.holds_any or provider_tokens > attempt.to.window.tokens:
        return False
    return provider_tokens <= (attempt.most_tokens if sent is None else _most_tokens(attempt))


def _is_low(attempt: Attempt, provider_tokens: ProviderTokens) -> bool:
    expected = (attempt.latin_tokens + attempt.other_tokens - attempt.guessed_tokens) * attempt.known.factor
    is_uncounted = attempt.uncounted.holds_any or attempt.uncounted.holds_unbilled
    is_known = not is_uncounted and provider_tokens >= LEAST_LOW_TOKENS
    return is_known and provider_tokens < LOW_BILL_FRACTION * expected


def _mostly_text(attempt: Attempt) -> bool:
    return attempt.guessed_tokens <= MOST_GUESSED_FRACTION * (attempt.sent_tokens or 0)
