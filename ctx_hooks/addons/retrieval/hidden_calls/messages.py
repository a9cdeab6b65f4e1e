"""Calls of a hidden tool in answers of Anthropic's messages, whole and streamed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctx_hooks.addons.retrieval.hidden_calls.turn import Turn, object_of, total
from ctx_hooks.conversation.model import Format, ToolCall
from ctx_hooks.formats.fields import compact_json

FORMAT: Format = "anthropic"
REPEATS_TOOLS = False
NO_CALLS: Mapping[str, Any] = {"tool_choice": {"type": "none"}}
CALLED = "tool_use"
GROWING = ("text", "thinking", "signature")
"""The fields of a block that grow by the same field of a delta, whose type is named after it."""
ARGUMENTS = "input_json_delta"
CITATION = "citations_delta"
NO_ARGUMENTS = "{}"


def turn_of(answer: Mapping[str, Any], tool: str) -> Turn:
    """Return what a whole answer says."""
    blocks = [block for block in answer.get("content") or () if isinstance(block, Mapping)]
    return _turn([(block, compact_json(block.get("input"))) for block in blocks], answer.get("stop_reason"), tool)


def joined(answers: Sequence[Mapping[str, Any]], tool: str, *, is_whole: bool = True) -> dict[str, Any]:
    """Return the answers of a request as one, without calls of `tool`; one that is not whole says that it is cut off."""
    blocks = [block for answer in answers for block in answer.get("content") or () if not _is_hidden(block, tool)]
    last = answers[-1]
    reason = last.get("stop_reason") if is_whole else "max_tokens"
    end = {"stop_reason": _shown_reason(reason, has_calls=any(block.get("type") == CALLED for block in blocks))}
    if "stop_sequence" in last:
        end["stop_sequence"] = last["stop_sequence"]
    return {**answers[0], "content": blocks, **end, "usage": total([a.get("usage") or {} for a in answers])}


class _MessageStream:
    # Blocks of text and thinking go on as they come, numbered through. `message_delta` and `message_stop` are withheld
    # until it is known whether that is the end; `message_start` of a further answer is hidden.

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._shown_blocks = 0
        self._usages: list[Mapping[str, Any]] = []
        self._begin()

    def _begin(self) -> None:
        self._blocks: dict[Any, dict[str, Any]] = {}
        self._arguments: dict[Any, str] = {}
        self._numbers: dict[Any, int] = {}
        self._stop_reason: str | None = None
        self._withheld: list[Mapping[str, Any]] = []
        self._usage: dict[str, Any] = {}

    def seen(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        kind = event.get("type")
        if kind == "message_start":
            self._note_usage((event.get("message") or {}).get("usage"))
            return None if self._usages else event
        if kind in ("message_delta", "message_stop"):
            self._note_usage(event.get("usage"))
            self._stop_reason = (event.get("delta") or {}).get("stop_reason") or self._stop_reason
            self._withheld.append(event)
            return None
        if kind not in ("content_block_start", "content_block_delta", "content_block_stop"):
            return event
        index = event.get("index")
        if kind == "content_block_start":
            self._blocks[index] = dict(event.get("content_block") or {})
            if not _is_hidden(self._blocks[index], self._tool):
                self._numbers[index] = self._shown_blocks
                self._shown_blocks += 1
        if kind == "content_block_delta":
            self._grow(index, event.get("delta") or {})
        number = self._numbers.get(index)
        if number is None:
            return None
        return event if number == index else {**event, "index": number}

    def turn(self) -> Turn:
        blocks = [(self._whole(i, block), self._arguments.get(i, NO_ARGUMENTS)) for i, block in self._blocks.items()]
        return _turn(blocks, self._stop_reason, self._tool)

    def go_on(self) -> None:
        self._usages.append(self._usage)
        self._begin()

    def end(self) -> Sequence[Mapping[str, Any]]:
        # Clients take its usage in place of what `message_start` stated. Anthropic: "The token counts shown in the usage
        # field of the message_delta event are cumulative."
        return [self._ending(event) for event in self._withheld]

    def _ending(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        delta = event.get("delta")
        if not isinstance(delta, Mapping):
            return event
        has_calls = any(b.get("type") == CALLED and not _is_hidden(b, self._tool) for b in self._blocks.values())
        reason = _shown_reason(delta.get("stop_reason"), has_calls=has_calls)
        changed = event if reason == delta.get("stop_reason") else {**event, "delta": {**delta, "stop_reason": reason}}
        return {**changed, "usage": total([*self._usages, self._usage])} if self._usages else changed

    def _note_usage(self, usage: Any) -> None:
        """Note what an event states: later ones replace what earlier ones did."""
        if isinstance(usage, Mapping):
            self._usage |= {name: value for name, value in usage.items() if value is not None}

    def _grow(self, index: Any, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(index, {})
        kind = delta.get("type")
        if kind == ARGUMENTS:
            self._arguments[index] = self._arguments.get(index, "") + (delta.get("partial_json") or "")
        elif kind == CITATION:
            block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
        elif (field := str(kind).removesuffix("_delta")) in GROWING:
            block[field] = (block.get(field) or "") + (delta.get(field) or "")

    def _whole(self, index: Any, block: Mapping[str, Any]) -> Mapping[str, Any]:
        arguments = self._arguments.get(index)
        return {**block, "input": object_of(arguments)} if arguments else block


stream = _MessageStream


def _turn(blocks: Sequence[tuple[Mapping[str, Any], str]], stop_reason: str | None, tool: str) -> Turn:
    """Return the turn of blocks, each with its arguments as text; an empty text is none, which providers refuse back."""
    content = [block for block, _ in blocks if block.get("type") != "text" or str(block.get("text") or "").strip()]
    calls = [(block, arguments) for block, arguments in blocks if block.get("type") == CALLED]
    hidden = tuple(ToolCall(str(block.get("id")), tool, arguments) for block, arguments in calls if _is_hidden(block, tool))
    shown = [block for block in content if not _is_hidden(block, tool)]
    sent, seen = ({"role": "assistant", "content": said} for said in (content, shown))
    return Turn((sent,), (seen,), hidden, len(hidden) < len(calls), stop_reason)


def _is_hidden(block: Any, tool: str) -> bool:
    return isinstance(block, Mapping) and block.get("type") == CALLED and block.get("name") == tool


def _shown_reason(reason: Any, *, has_calls: bool) -> Any:
    return "end_turn" if reason == CALLED and not has_calls else reason
