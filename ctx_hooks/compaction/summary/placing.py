"""Where the summary of removed messages stands, and what stands for answers that are gone."""

from __future__ import annotations

from collections import Counter as Occurrences
from itertools import pairwise
from typing import TYPE_CHECKING

from ctx_hooks.compaction.summary.extractive import CHARS_PER_TOKEN, ends_of
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.exchanges import is_request
from ctx_hooks.conversation.model import Text
from ctx_hooks.conversation.protection import newest_replacement, stays
from ctx_hooks.formats import WIRE_FORMATS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ctx_hooks.conversation.model import Conversation, Message
    from ctx_hooks.policy.settings import Language
    from ctx_hooks.tokens.budget import Budget

UNANSWERED_FRACTION = 0.04
"""Of the goal, what may stand for answers that are gone."""
BEGINNING_CHARS, END_CHARS = 60, 140
"""What is quoted of such an answer: what it asked or concluded is at its end."""
LINE_CHARS = 300
"""What the line has that stands for it."""


def most_unanswered(budget: Budget) -> int:
    """Return about how many users' turns may stay without their answers."""
    return int(budget.goal_tokens * UNANSWERED_FRACTION * CHARS_PER_TOKEN / LINE_CHARS)


def unanswered_turns(
    conversation: Conversation, gone: Collection[int], budget: Budget
) -> tuple[Mapping[int, str], frozenset[int]]:
    """Return what stands behind users' turns of which no answer is left, by its index, and which answers these quote."""
    messages = conversation.messages
    left = [i for i in range(len(messages)) if i not in gone]
    room_chars = budget.goal_tokens * UNANSWERED_FRACTION * CHARS_PER_TOKEN
    found, told = {}, set()
    for turn, behind in reversed(list(pairwise(left))):
        removed = messages[turn + 1 : behind]
        if not (is_request(messages[turn]) and is_request(messages[behind]) and any(m.role == "assistant" for m in removed)):
            continue
        calls = Occurrences(call.name for message in removed for call in message.calls)
        answers = [i for i in range(turn + 1, behind) if messages[i].role == "assistant" and messages[i].text.strip()]
        said = messages[answers[-1]].text if answers else ""
        text = placeholders.removed_here(
            len(removed),
            [f"{name} x{times}" if times > 1 else name for name, times in calls.items()],
            ends_of(said.strip(), BEGINNING_CHARS, END_CHARS),
            budget.policy.language,
        )
        room_chars -= len(text)
        if room_chars < 0:
            break
        found[turn] = text
        told.update(answers[-1:])
    return found, frozenset(told)


def with_summary(
    conversation: Conversation,
    forms: Mapping[int, Message],
    gone: Collection[int],
    summary: str,
    unanswered: Mapping[int, str],
    language: Language,
) -> list[Message]:
    """Return what is left of a conversation, with the summary where the first of the removed messages stood.

    It stands behind the words of the newest user's turn before that, or of the first turn before which at most a tenth of
    them stood, or before those of the message that comes first, so that no two messages of the user's stand beside each
    other; else it is a message of its own behind what has settled, or the leading system messages and a provider's own
    compaction. What is pinned, or said by another agent, is left alone.

    Args:
        conversation: the whole.
        forms: what is sent for some of its messages, by index.
        gone: the indices of the removed ones.
        summary: of these.
        unanswered: what is said behind users' turns of which no answer is left, by index.
        language: of the line that ends the summary.
    """
    messages, codec = conversation.messages, WIRE_FORMATS[conversation.format]
    left = [i for i in range(len(messages)) if i not in gone]
    replaced = newest_replacement(conversation)
    opening = (i for i in left if i > replaced and messages[i].role != "system")
    place = max(next(opening, len(messages)), conversation.settled)
    few = sorted(gone)[len(gone) // 10]
    turns = [i for i in left if place <= i < few and _is_open(messages[i])]
    turns = [i for i in turns if i < min(gone)] or turns[:1]
    first = next((i for i in left if i >= place), None)
    sent: list[Message] = []
    for i in left:
        message = forms.get(i, messages[i])
        if turns and i == turns[-1]:
            message = _behind(message, f"{summary}\n{placeholders.summary_end(language, is_behind=True)}")
        elif not turns and i == first:
            if _is_open(message):
                message = _opened(message, f"{summary}\n{placeholders.summary_end(language)}\n")
            else:
                sent.append(codec.new_message("user", summary))
        sent.append(message)
        if i in unanswered:
            sent.append(codec.new_message("assistant", unanswered[i]))
    return sent if turns or first is not None else [*sent, codec.new_message("user", summary)]


def _is_open(message: Message) -> bool:
    return is_request(message) and not (message.results or stays(message)) and message.name is None


def _opened(message: Message, text: str) -> Message:
    """Return the user's message with `text` before the user's words, in the manner of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text(f"{text}\n{message.text}"),))
    return message.with_parts((Text(text), *message.parts))


def _behind(message: Message, text: str) -> Message:
    """Return the user's message with `text` behind the user's words, in the manner of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text(f"{message.text}\n\n{text}"),))
    return message.with_parts((*message.parts, Text(f"\n{text}")))
