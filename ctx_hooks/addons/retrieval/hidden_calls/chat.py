"""Calls of a hidden tool in answers of OpenAI's chat completions, whole and streamed.

A turn is taken from the first choice: nobody asks for several answers and has tools called in them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ctx_hooks.addons.retrieval.hidden_calls.turn import Turn, object_of, total
from ctx_hooks.conversation.model import Format, ToolCall

FORMAT: Format = "openai-chat"
REPEATS_TOOLS = False
NO_CALLS: Mapping[str, Any] = {"tool_choice": "none"}
CALLED = frozenset({"tool_calls", "function_call"})
BETWEEN = "\n\n"
"""Stands between the texts of two answers: a chat message has one text."""
HEAD = ("id", "created", "model", "system_fingerprint")
"""What all chunks of a stream have in common, and clients join them by."""
SENT_BACK = ("reasoning_content", "thinking_blocks", "provider_specific_fields")
"""What LiteLLM's chat messages have beside text and calls, and take back."""


def turn_of(answer: Mapping[str, Any], tool: str) -> Turn:
    """Return what a whole answer says."""
    choice = _choice(answer)
    return _turn(choice.get("message") or {}, choice.get("finish_reason"), tool)


def joined(answers: Sequence[Mapping[str, Any]], tool: str, *, is_whole: bool = True) -> dict[str, Any]:
    """Return the answers of a request as one, without calls of `tool`; one that is not whole says that it is cut off."""
    messages = [_choice(answer).get("message") or {} for answer in answers]
    last = _choice(answers[-1])
    calls = [call for call in messages[-1].get("tool_calls") or () if _name(call) != tool]
    message = {name: value for name, value in messages[-1].items() if name != "tool_calls"}
    message["content"] = BETWEEN.join(m["content"] for m in messages if m.get("content")) or (None if calls else "")
    if calls:
        message["tool_calls"] = calls
    if thoughts := [m["reasoning_content"] for m in messages if m.get("reasoning_content")]:
        message["reasoning_content"] = BETWEEN.join(thoughts)
    if blocks := [block for m in messages for block in m.get("thinking_blocks") or ()]:
        message["thinking_blocks"] = blocks
    reason = last.get("finish_reason") if is_whole else "length"
    choice = {**last, "message": message, "finish_reason": _shown_reason(reason, has_calls=bool(calls))}
    return {**answers[0], "choices": [choice], "usage": total([a.get("usage") or {} for a in answers])}


class _ChatStream:
    # Text and thinking go on as they come. From the chunk that says why an answer ended, which usage follows, everything is
    # withheld until it is known whether that is the end.

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._head: dict[str, Any] | None = None
        self._has_text = False
        self._usages: list[Mapping[str, Any]] = []
        self._begin()

    def _begin(self) -> None:
        self._message: dict[str, Any] = {}
        self._calls: list[dict[str, Any]] = []
        self._at: dict[Any, int] = {}
        self._finish_reason: str | None = None
        self._withheld: list[Mapping[str, Any]] = []
        self._usage: Mapping[str, Any] | None = None
        self._is_separated = not self._has_text

    def seen(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        chunk = event
        if self._head is None:
            self._head = {name: chunk[name] for name in HEAD if name in chunk}
        if self._usages:
            chunk = {**chunk, **self._head}
        choice = _choice(chunk)
        if choice.get("index"):
            return chunk  # of another answer to the same request
        if not choice and not chunk.get("usage"):
            return event  # an error, or what a server adds
        delta = choice.get("delta") or {}
        self._usage = chunk.get("usage") or self._usage
        self._finish_reason = choice.get("finish_reason") or self._finish_reason
        shown = self._shown(delta)
        if self._finish_reason is None and not chunk.get("usage"):
            if shown is delta:
                return chunk
            return _with_delta(chunk, shown) if any(shown.values()) else None
        self._withheld.append(_with_delta(chunk, {}) if choice else chunk)
        if not any(shown.values()):
            return None
        said = _with_delta(chunk, shown, finish_reason=None)
        return {name: value for name, value in said.items() if name != "usage"}

    def turn(self) -> Turn:
        return _turn({**self._message, "tool_calls": self._calls}, self._finish_reason, self._tool)

    def go_on(self) -> None:
        self._usages.append(self._usage or {})
        self._begin()

    def end(self) -> Sequence[Mapping[str, Any]]:
        usage = total([*self._usages, self._usage or {}])
        reason = _shown_reason(self._finish_reason, has_calls=any(_name(call) != self._tool for call in self._calls))
        return [self._ending(chunk, usage, reason) for chunk in self._withheld]

    def _ending(self, chunk: Mapping[str, Any], usage: Mapping[str, Any], reason: str | None) -> Mapping[str, Any]:
        changed = {**chunk, "usage": usage} if chunk.get("usage") and self._usages else chunk
        choice = _choice(changed)
        if choice.get("finish_reason") in (None, reason):
            return changed
        return {**changed, "choices": [{**choice, "finish_reason": reason}, *changed["choices"][1:]]}

    def _shown(self, delta: Mapping[str, Any]) -> Mapping[str, Any]:
        """Note what a delta says and return what the client sees of it, the very delta where that is all."""
        pieces = list(delta.get("tool_calls") or ())
        kept = [piece for piece in map(self._noted, pieces) if piece is not None]
        changed: dict[str, Any] = {}
        if kept != pieces:
            changed["tool_calls"] = kept or None
        text = delta.get("content")
        if text:
            self._message["content"] = (self._message.get("content") or "") + text
            if not self._is_separated:
                changed["content"] = BETWEEN + text
            self._is_separated = self._has_text = True
        self._note_thinking(delta)
        if self._usages and delta.get("role"):
            changed["role"] = None
        shown = {**delta, **changed} if changed else delta
        hides = bool(changed or self._usages)
        return {} if hides and not any(shown.values()) else shown

    def _note_thinking(self, delta: Mapping[str, Any]) -> None:
        if delta.get("reasoning_content"):
            before = self._message.get("reasoning_content") or ""
            self._message["reasoning_content"] = before + delta["reasoning_content"]
        if delta.get("thinking_blocks"):
            blocks = self._message.setdefault("thinking_blocks", [])
            for piece in delta["thinking_blocks"]:
                _add_thinking(blocks, piece)
        said = {k: v for k, v in (delta.get("provider_specific_fields") or {}).items() if v is not None}
        said.pop("thinking_blocks", None)  # LiteLLM repeats them there
        if said:
            self._message["provider_specific_fields"] = {**self._message.get("provider_specific_fields", {}), **said}

    def _noted(self, piece: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Note a piece of a call and return it as the client sees it, numbered among its own calls; None if it is hidden."""
        index = piece.get("index")
        function = piece.get("function") or {}
        at = self._at.get(index)
        if at is None or (piece.get("id") and piece["id"] != self._calls[at]["id"]):
            at = self._at[index] = len(self._calls)
            kept = {k: v for k, v in piece.items() if k != "index" and v is not None}
            begun = {**{k: v for k, v in function.items() if v is not None}, "arguments": ""}
            self._calls.append({**kept, "id": piece.get("id") or "", "function": begun})
        call = self._calls[at]["function"]
        call["arguments"] += function.get("arguments") or ""
        if call.get("name") == self._tool:
            return None
        number = sum(_name(c) != self._tool for c in self._calls[:at])
        return piece if number == index else {**piece, "index": number}


stream = _ChatStream


def _turn(message: Mapping[str, Any], finish_reason: str | None, tool: str) -> Turn:
    calls = [_call_sent_back(call, tool) for call in message.get("tool_calls") or ()]
    own = [call for call in calls if _name(call) != tool]
    said: dict[str, Any] = {"role": "assistant", "content": message.get("content") or None}
    said |= {name: message[name] for name in SENT_BACK if message.get(name)}
    sent = {**said, "tool_calls": calls} if calls else said
    shown = {**said, "tool_calls": own} if own else {**said, "content": said["content"] or ""}
    hidden = [call for call in message.get("tool_calls") or () if _name(call) == tool]
    found = tuple(ToolCall(c["id"], tool, c["function"].get("arguments") or "") for c in hidden)
    return Turn((sent,), (shown,), found, bool(own), finish_reason)


def _call_sent_back(call: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """Return a call as a message has it: servers behind LiteLLM read its arguments, and fail where they are no JSON."""
    sent = {name: value for name, value in call.items() if name != "index" and value is not None}
    if _name(call) == tool and not object_of(call["function"].get("arguments") or ""):
        sent["function"] = {**call["function"], "arguments": json.dumps({})}
    return {"type": "function", **sent}


def _add_thinking(blocks: list[dict[str, Any]], piece: Mapping[str, Any]) -> None:
    """Add a piece of thinking to the block that it goes on with: one that no signature has closed.

    LiteLLM 1.100 repeats all of the thinking beside its signature; 1.106 has "" there.
    """
    open_block = blocks[-1] if blocks and blocks[-1].get("type") == "thinking" and not blocks[-1].get("signature") else None
    if open_block is None or piece.get("type") != "thinking":
        blocks.append(dict(piece))
        return
    before, added = open_block.get("thinking") or "", piece.get("thinking") or ""
    is_repeated = bool(piece.get("signature")) and added == before
    open_block["thinking"] = before if is_repeated else before + added
    if piece.get("signature"):
        open_block["signature"] = piece["signature"]


def _shown_reason(reason: str | None, *, has_calls: bool) -> str | None:
    return "stop" if reason in CALLED and not has_calls else reason


def _with_delta(chunk: Mapping[str, Any], delta: Mapping[str, Any], **changes: Any) -> dict[str, Any]:
    return {**chunk, "choices": [{**_choice(chunk), "delta": delta, **changes}, *chunk["choices"][1:]]}


def _choice(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = answer.get("choices")
    return choices[0] if choices else {}


def _name(call: Mapping[str, Any]) -> str:
    return str((call.get("function") or {}).get("name") or "")
