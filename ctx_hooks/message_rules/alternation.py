"""Compaction keeps turns alternating if they alternated in the original conversation, and the first message is the user's.

Chat templates of Gemma, Mistral and Llama 2 on vLLM: "Conversation roles must alternate user/assistant/user/assistant/...",
"After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."; Mistral's API:
"Unexpected role 'user' after role 'tool'". Most providers join neighbours of one role: other conversations stay unchanged.
"""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import REMOVED_MESSAGE, Message, replaces_history
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.message_rules.rule import Repair, Repaired
from ctx_hooks.policy.settings import Language

Turn = Literal["user", "assistant", "calls", "tool"]
OTHER: dict[Turn, Turn] = {"user": "assistant", "assistant": "user"}


def kept(before: Conversation, after: Conversation, language: Language = "en") -> Conversation:
    """Return `after` with placeholder messages, so that its turns alternate and end as those of `before` did."""
    return after if after is before else alternating(map(turn_of, before.messages), after, language)


def alternating(before: Iterable[Turn | None], after: Conversation, language: Language = "en") -> Conversation:
    """Return `after` as `kept` does, from the turns of the messages before."""
    gemini = after.signs_parts  # it refuses a call behind the model's own turn: no placeholder of the model is added there
    turns = [turn for turn in before if turn is not None]
    said_in_turn = [turn for turn in turns if turn in OTHER]
    pairs = set(pairwise(turns))
    # Templates that know tools count this way (Mistral): "if not (message.role == 'tool' or message.tool_calls)".
    spoken = not gemini and all(turn == ("user", "assistant")[n % 2] for n, turn in enumerate(said_in_turn))
    beside = not any(_side(a) == _side(b) != "tool" for a, b in pairs)
    answered = pairs.isdisjoint({("calls", "user"), ("tool", "user")})
    if not (spoken or beside or answered or gemini):
        return after
    filled: list[Message] = []
    said: Turn = "assistant"
    last: Turn | None = None
    for message in after.messages:
        turn = turn_of(message)
        if turn in OTHER and spoken and turn == said:
            last = said = _fill(filled, OTHER[turn], after.format, language)
        elif answered and (last, turn) == ("tool", "user"):
            last = said = _fill(filled, "assistant", after.format, language)
        joined = beside or (gemini and turn == "calls")
        if turn is not None and joined and last is not None and _side(turn) == _side(last) != "tool":
            said = _fill(filled, "user" if _side(turn) == "assistant" else "assistant", after.format, language)
        filled.append(message)
        last = turn or last
        said = turn if turn in OTHER else said
    if spoken and said_in_turn and said != said_in_turn[-1]:
        place = max((i + 1 for i, m in enumerate(filled) if turn_of(m) in OTHER), default=len(filled))
        filled.insert(place, _placeholder(said_in_turn[-1], after.format, language))
    return after.with_messages(tuple(filled))


def turn_of(message: Message) -> Turn | None:
    """Return whose turn a message is; None if templates do not count it (system text, reasoning items)."""
    if message.calls:
        return "calls"
    if message.results or message.role == "tool":
        return "user" if message.text.strip() else "tool"
    if message.role == "assistant":
        return None if _is_reasoning(message) else "assistant"
    return "user" if message.role == "user" else None


def _side(turn: Turn) -> Turn:
    return "assistant" if turn == "calls" else turn


def _is_reasoning(message: Message) -> bool:
    return message.raw.get("type") == "reasoning"


def _fill(messages: list[Message], turn: Turn, fmt: str, language: Language) -> Turn:
    """Put a message of `turn` at the end, before the reasoning of the item that comes next."""
    place = len(messages)
    while place and _is_reasoning(messages[place - 1]):
        place -= 1
    messages.insert(place, _placeholder(turn, fmt, language))
    return turn


def _placeholder(turn: Turn, fmt: str, language: Language) -> Message:
    return WIRE_FORMATS[fmt].new_message("user" if turn == "user" else "assistant", REMOVED_MESSAGE[language])


def first_message_is_users(conversation: Conversation, *, language: Language, **_: bool) -> Repaired:
    """Insert a placeholder of the user if an assistant message would be the first.

    Anthropic: "messages: first message must use the "user" role"; nothing may precede its compaction block. Google of older
    models: "Please ensure that multiturn requests alternate between user and model".
    """
    messages = conversation.messages
    place = next((i for i, m in enumerate(messages) if m.role != "system"), None)
    if place is None or messages[place].role != "assistant" or replaces_history(messages[place]):
        return conversation, ()
    opened = (*messages[:place], _placeholder("user", conversation.format, language), *messages[place:])
    repair = Repair("first_message_is_users", place, "the first message is the assistant's")
    return conversation.with_messages(opened), (repair,)


def calls_follow_user(conversation: Conversation, **_: object) -> Repaired:
    """Join a content that has calls with the model's contents before it, without loss or change.

    Google: "Please ensure that function call turn comes immediately after a user turn or after a function response turn".
    """
    messages: list[Message] = []
    repairs = []
    for i, message in enumerate(conversation.messages):
        parts = message.parts
        while message.calls and messages and messages[-1].role == "assistant":
            parts = (*messages.pop().parts, *parts)
        if parts is not message.parts:
            repairs.append(Repair(calls_follow_user.__name__, i, "a call behind the model's own turn"))
        messages.append(message if parts is message.parts else replace(message, parts=parts, edited=True))
    return conversation.with_messages(tuple(messages)), tuple(repairs)
