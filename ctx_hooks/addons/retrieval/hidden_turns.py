"""Puts the provider's hidden messages back into the client's next request.

A client sends back the answer that it has seen, without the calls of the hidden tool and their results. The add-on keeps the
provider's own messages for each such answer, and puts them in its place. So call ids and signatures are the provider's, its
prompt cache matches, and the model still has the retrieved texts.

The key is the answer's anchor, a digest of the asker and of all texts up to the answer. So no text that was retrieved in one
conversation reaches another: only a client that has sent the same texts gets it, including system text, results and media.
If a client changes more than `conversation_digest.py` ignores, it gets no hidden turn back, and its history is sent
unchanged.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from ctx_hooks.addons.retrieval.conversation_digest import ASSISTANT, ITEM, THINKING, role_of
from ctx_hooks.formats.fields import CACHE_MARKER


@dataclass(frozen=True, slots=True)
class HiddenTurn:
    """The provider's messages that replace one answer with hidden calls.

    Attributes:
        anchor: the anchor of the answer that the client has seen.
        messages: the provider's answers, and the results of hidden calls between them.
        results: hidden results of its last answer, sent beside the client's: chat messages, blocks of a user's, or items.
    """

    anchor: str
    messages: Annotated[Sequence[Mapping[str, Any]], Field(min_length=1)]
    results: Sequence[Mapping[str, Any]] = ()


_TURN = TypeAdapter(HiddenTurn)


def written(turn: HiddenTurn) -> str:
    """Return a turn as a text."""
    fields = {"anchor": turn.anchor, "messages": turn.messages, "results": turn.results}
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def read(text: str) -> HiddenTurn | None:
    """Return the turn of a text, None for a broken text: whoever has the store can write to it."""
    try:
        return _TURN.validate_python(json.loads(text))
    except (ValueError, RecursionError):
        return None


def spliced(messages: Sequence[Any], anchors: Sequence[str], turns: Sequence[HiddenTurn]) -> Sequence[Any]:
    """Return the messages with the provider's own in place of each answer with hidden calls.

    Messages that are in place already are not replaced again: their hidden calls give them another anchor.

    Returns:
        A new list; the same object if none of the messages has an anchor.
    """
    known = {turn.anchor: turn for turn in turns}
    found = [known.get(anchor) for anchor in anchors]
    if not any(found):
        return messages
    whole: list[Any] = []
    results: Sequence[Mapping[str, Any]] = ()
    run = 0
    for i, (message, turn) in enumerate(zip(messages, found, strict=True)):
        whole += _with_results(message, results)
        results = ()
        run = run + 1 if role_of(message) == ASSISTANT else 0
        if turn is not None and _is_answer(turn, run, messages[i + 1 : i + 2]):
            whole[-run:] = _marked(turn.messages, message)
            results = turn.results
    return [*whole, *_with_results(None, results)]


def _is_answer(turn: HiddenTurn, run: int, following: Sequence[Any]) -> bool:
    """Whether an assistant's last `run` messages are the whole answer that a turn replaces, and not half of it.

    In Responses an answer is all items up to one that is not the assistant's; in the other formats one message.
    """
    if ITEM in turn.messages[0]:
        return not any(role_of(message) == ASSISTANT for message in following)
    return run == 1


def _with_results(message: Any, results: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the message after an answer, with the results of the answer's hidden calls before its own content."""
    own = [] if message is None else [message]
    if not results:
        return own
    if role_of(results[0]) == "tool":
        return [*results, *own]
    if role_of(message) != "user":
        return [{"role": "user", "content": list(results)}, *own]
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())
    return [{**message, "content": [*results, *blocks]}]


def _marked(messages: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]) -> list[Any]:
    """Return the provider's messages; their last gets the client's cache marker from the message that they replace."""
    content = shown.get("content")
    blocks = [b for b in content if isinstance(b, Mapping)] if isinstance(content, (list, tuple)) else []
    markers = [b[CACHE_MARKER] for b in blocks if b.get(CACHE_MARKER)]
    last = dict(messages[-1])
    if shown.get(CACHE_MARKER):
        last[CACHE_MARKER] = shown[CACHE_MARKER]
    if markers and last.get("content"):
        said = last["content"]
        own = [{"type": "text", "text": said}] if isinstance(said, str) else list(said)
        at = max((i for i, b in enumerate(own) if b.get("type") not in THINKING), default=None)
        if at is not None:
            own[at] = {**own[at], CACHE_MARKER: markers[-1]}
            last["content"] = own
    return [*messages[:-1], last]
