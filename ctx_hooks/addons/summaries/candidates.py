"""The requests of conversations that summaries are written of, and what of them is summarised next."""

import math
from typing import Any, NamedTuple

from ctx_hooks.addons.summaries.call import payer_of
from ctx_hooks.compaction.history import History, digest_of
from ctx_hooks.compaction.summary.extractive import summary_tokens
from ctx_hooks.compaction.summary.model_written import Summaries, WrittenSummary, newest_within, prefixes
from ctx_hooks.conversation.model import Message, is_request
from ctx_hooks.formats.fields import unmarked
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import compression_deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.tokens.units import LocalTokens, to_provider

DUE_FRACTION = 0.8
"""Of the budget: above it an answer's input has the next summary written (pi)."""
WAITING_FRACTION = 0.75
"""A summary that the compaction it was written for has not taken is new enough for the next one."""


class Asking(NamedTuple):
    """A request of a conversation that summaries are written of, as the client sent it, and on whose account they are."""

    request: Request
    to: Target
    settings: SummarySettings
    conversation: str
    payer: Any
    size_bytes: int


async def asking_of(request: Request, to: Target) -> Asking | None:
    """Return a request as one of a conversation that summaries are written of; None if none are.

    Raises:
        MalformedConversationError: a message that has to be read is none.
    """
    settings = to.policy.summary_in_use
    payer = payer_of(request.call) if settings is not None and to.policy.mode == "enforce" else None
    if settings is None or payer is None:
        return None

    def asking() -> Asking:
        key = conversation_key(request.messages, to.tenant, settings)
        return Asking(request, to, settings, key, payer, request.size_bytes)

    found = await pool.run(to.tenant, asking, compression_deadline())
    return found if found.conversation else None


def conversation_key(messages: MessageReader, tenant: str, settings: SummarySettings) -> str:
    """Return the key that all summaries of a conversation share; "" if nobody has asked and was answered yet.

    It is the digest of the messages up to the first answer, after the tenant's: no other tenant ever finds a summary, and an
    operator can erase those of one. System text is in no key: no summary is written of it, and clients write the time there.

    Raises:
        MalformedConversationError: a message that has to be read is none.
    """
    beginning: list[Any] = []
    is_asked = False
    for i, item in enumerate(messages.items):
        message = messages.message(i)
        if message.role == "system":
            continue
        beginning.append(unmarked(item))
        if is_asked and message.role == "assistant":
            digest = digest_of((tenant, settings.model, settings.prompt, messages.format, beginning))
            return f"{tenant}:{digest.hex()}"
        is_asked = is_asked or is_request(message)
    return ""


class SummaryTask(NamedTuple):
    """What is to be summarised next: the messages behind the summary `before`, "" for none, which is updated.

    `prefix` is the digest of all `length` messages that the summary will stand for, in hexadecimal.
    """

    prefix: str
    length: int
    messages: tuple[Message, ...]
    before: str = ""


def task_of(history: History, summaries: Summaries, length: int, after: int) -> SummaryTask | None:
    """Return what is to be summarised so that a summary stands for the first `length` messages of a history.

    None if one is known that stands for more than `after` of them, which the compactions before have, or that no compaction
    has yet and stands for WAITING_FRACTION of them: it is used before another one is written.
    """
    digests = prefixes(history, summaries.conversation.encode())
    before = newest_within(summaries, digests, length) or WrittenSummary("", 0, "")
    waits = before.prefix not in summaries.chosen.values() and before.length >= length * WAITING_FRACTION
    if before.length > after or waits:
        return None
    messages = history.messages.conversation(before.length, length).messages
    return SummaryTask(digests[length].hex(), length, messages, before.text)


def fitted(settings: SummarySettings, attempt: Attempt) -> SummarySettings:
    """Return settings with a longest summary for which an attempt's budget has room, beside the users' words."""
    if attempt.budget_tokens is None:
        return settings
    room_tokens = int(summary_tokens(attempt.budget_tokens, most_tokens=math.inf))
    return settings.model_copy(update={"max_tokens": min(settings.max_tokens, room_tokens)})


def is_due(attempt: Attempt, input_tokens: int) -> bool:
    """Whether the next summary is begun behind an answer, so that it is there when a compaction takes a new one.

    It is above DUE_FRACTION of the budget, and before if another request like the newest exceeds the budget.
    """
    if attempt.budget_tokens is None:
        return False
    factor, free_tokens = attempt.limits.factor, attempt.budget_tokens - input_tokens
    if attempt.choice is not None:
        if attempt.choice.free_tokens is None:
            return False
        free_tokens = to_provider(LocalTokens(attempt.choice.free_tokens), factor)
    growth_tokens = to_provider(LocalTokens((attempt.received_tokens or attempt.seen_tokens) - attempt.seen_tokens), factor)
    return free_tokens < max((1 - DUE_FRACTION) * attempt.budget_tokens, growth_tokens)
