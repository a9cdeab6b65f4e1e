"""Where the records of removed messages stand: where these stood, so that what is sent reads in order."""

from collections.abc import Collection, Mapping

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.exchanges import is_request
from ctx_hooks.conversation.model import Conversation, Message, Text
from ctx_hooks.conversation.protection import newest_replacement, stays
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.policy.settings import Language


def gaps_of(gone: Collection[int]) -> tuple[range, ...]:
    """Return the runs of indices that stand side by side, in order.

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
    """Return what is left of a conversation, with each record in the place of the messages that it stands for.

    Directly behind a user's words it is part of the same message, unless another user's message follows; before a user's
    words it is part of that message, if nobody or the assistant spoke last. So it comes to stand beside no message of its
    own role. Else it is a message of its own: the assistant's before a user's words, otherwise a user's. What is pinned, has
    settled or was said by another agent is left as it is, and a provider's own compaction stands for what was before it.

    Args:
        conversation: the whole.
        forms: what is sent for some of its messages, by index.
        gone: the indices of the removed ones.
        records: by the gap that each stands for.
        language: of the line that ends a record before a user's words.
    """
    messages, codec = conversation.messages, WIRE_FORMATS[conversation.format]
    replaced = newest_replacement(conversation)
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
            behind = _opened(behind, f"{text}\n{placeholders.record_end(language)}\n")
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
    """Return the user's message with `text` before the user's words, in the manner of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text(f"{text}\n{message.text}"),))
    return message.with_parts((Text(text), *message.parts))


def _behind(message: Message, text: str) -> Message:
    """Return the user's message with `text` behind the user's words, in the manner of its content."""
    if isinstance(message.raw.get("content"), str):
        return message.with_parts((Text(f"{message.text}\n\n{text}"),))
    return message.with_parts((*message.parts, Text(f"\n{text}")))
