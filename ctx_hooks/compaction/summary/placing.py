"""The places of records: where the removed messages were, so that the conversation reads in order."""

from collections.abc import Collection, Mapping

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Text, is_request, stays
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.policy.settings import Language


def gaps_of(gone: Collection[int]) -> tuple[range, ...]:
    """Return the runs of consecutive indices, in order.

    >>> gaps_of({7, 2, 3, 4})
    (range(2, 5), range(7, 8))
    """
    starts = sorted(i for i in gone if i - 1 not in gone)
    stops = sorted(i + 1 for i in gone if i + 1 not in gone)
    return tuple(map(range, starts, stops))


def with_records(
    conversation: Conversation,
    forms: Mapping[int, Message],
    gone: Collection[int],
    records: Mapping[range, str],
    language: Language,
) -> list[Message]:
    """Return the rest of a conversation, with each record in the place of the messages that it replaces.

    Directly after a user's words a record joins the same message, unless another user's message follows. Before a user's
    words it joins that message if nobody or the assistant spoke last. So it has no neighbour of its own role. Else it is a
    separate message: the assistant's before a user's words, otherwise a user's. Pinned and settled messages and those of
    other agents stay unchanged. A provider's own compaction already replaces the messages before it.

    Args:
        conversation: the whole conversation.
        forms: the shortened forms of some of its messages, by index.
        gone: the indices of the removed messages.
        records: the records by the gap that each fills.
        language: the language of the line that ends a record before a user's words.
    """
    messages, codec = conversation.messages, WIRE_FORMATS[conversation.format]
    replaced = conversation.newest_replacement
    texts = {gap.stop: text for gap, text in records.items() if gap.stop > replaced}
    sent: list[Message] = []
    speaker, may_add = "", False
    for i in (i for i in range(len(messages) + 1) if i not in gone):
        behind = forms.get(i, messages[i]) if i < len(messages) else None
        is_asked = behind is not None and is_request(behind)
        text = texts.get(i)
        if text and may_add and not is_asked:
            sent[-1] = _behind(sent[-1], text)
        elif text and behind is not None and _is_open(behind) and speaker in ("", "assistant"):
            behind = _opened(behind, f"{text}\n{placeholders.line('end', language)}\n")
        elif text:
            sent.append(codec.new_message("assistant" if is_asked and speaker else "user", text))
        if behind is not None:
            sent.append(behind)
            speaker = speaker if behind.role in ("system", "other") else behind.role
            may_add = i >= conversation.settled and _is_open(behind)
    return sent


def _is_open(message: Message) -> bool:
    return is_request(message) and not (message.results or stays(message)) and message.name is None


def _opened(message: Message, text: str) -> Message:
    """Return the user's message with `text` before the user's words, in the form of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text(f"{text}\n{message.text}"),))
    return message.with_parts((Text(text), *message.parts))


def _behind(message: Message, text: str) -> Message:
    """Return the user's message with `text` after the user's words, in the form of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text(f"{message.text}\n\n{text}"),))
    return message.with_parts((*message.parts, Text(f"\n{text}")))
