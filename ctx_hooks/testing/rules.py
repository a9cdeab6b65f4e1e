"""The message rules of each format as a provider enforces them, independent of the plugin's: each checks the other."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ctx_hooks.testing import gemini
from ctx_hooks.testing.behaviour import Format

SIGNATURE_PREFIX = "fake-sig-"
CHAT_ROLES = {"system", "developer", "user", "assistant", "tool", "function"}
MOST_CACHE_MARKERS = 4
WANTS_REASONING = ("deepseek-v4", "kimi-k2", "thinker")
"""Parts of the names of models that refuse an answer with calls (DeepSeek's: any answer) without its reasoning; `thinker` is no real one."""


def violations(fmt: Format, payload: Mapping[str, Any], came: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Return the provider's 400 texts for every rule that the payload breaks, in the order in which it breaks them.

    `came`: the Responses items as the client sent them; they show which reasoning an item followed. The ids of the fake
    provider's own items show it, too.

    >>> violations("anthropic", {"messages": [{"role": "assistant", "content": "hello"}]})
    ['messages: first message must use the "user" role']
    """
    if fmt == "openai-responses":
        return [*_foreign_keys(payload), *_responses(payload, came), *_missing_reasoning(payload)]
    checks = {"openai-chat": _chat, "anthropic": _anthropic, "gemini": gemini.violations}
    return [*_foreign_keys(payload), *checks[fmt](payload), *_missing_reasoning(payload)]


def sign(thinking: str) -> str:
    """Return this provider's signature of a thinking block, which shows whether its text was altered."""
    return SIGNATURE_PREFIX + hashlib.sha256(thinking.encode()).hexdigest()[:16]


def _foreign_keys(payload: Mapping[str, Any]) -> Iterator[str]:
    """Refuse the plugin's own keys, and the flags that it reads: they must never reach a provider."""
    for key in (*payload, *(payload.get("metadata") or {})):
        if "ctx_hooks" in key:
            yield f"Unrecognized request argument supplied: {key}"
    for field in ("messages", "input", "contents"):
        items = payload.get(field)
        for i, item in enumerate(items if isinstance(items, list) else ()):
            holders = (item, *_blocks(item), *(item.get("parts") or ()))
            text = json.dumps([holder.get("context") for holder in holders])
            if '"pin"' in text or '"truncation_skip"' in text:
                yield f"{field}.{i}.context: Extra inputs are not permitted"


def _missing_reasoning(payload: Mapping[str, Any]) -> Iterator[str]:
    is_off = (payload.get("thinking") or {}).get("type") == "disabled"
    if is_off or not any(name in str(payload.get("model")) for name in WANTS_REASONING):
        return
    for i, m in enumerate(payload.get("messages") or ()):
        thoughts = (m.get("reasoning_content"), m.get("reasoning"), *(b.get("thinking") for b in _blocks(m)))
        if m.get("role") == "assistant" and not any(thoughts):
            if "deepseek" in str(payload["model"]):
                yield "The `reasoning_content` in the thinking mode must be passed back to the API."
            elif m.get("tool_calls") or _has(m, "tool_use"):
                yield f"thinking is enabled but reasoning_content is missing in assistant tool call message at index {i}"


def _chat(payload: Mapping[str, Any]) -> Iterator[str]:
    open_ids: list[str] = []
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "[] is too short - 'messages'"
        return
    for i, m in enumerate(messages):
        role, content = m.get("role"), m.get("content")
        if role not in CHAT_ROLES:
            yield f"Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
        if role == "tool":
            if m.get("tool_call_id") not in open_ids:
                yield "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            else:
                open_ids.remove(m["tool_call_id"])
        else:
            yield from _unanswered_chat(open_ids)
            open_ids = [c.get("id") for c in m.get("tool_calls") or []]
        if content is None and not (role == "assistant" and (m.get("tool_calls") or m.get("function_call"))):
            yield f"Invalid value for 'content': expected a string, got null. (messages.{i})"
        if m.get("tool_calls") == []:
            yield f"Invalid 'messages[{i}].tool_calls': empty array. Expected an array with minimum length 1."
        for c in m.get("tool_calls") or []:
            if "function" in c and not isinstance(c["function"].get("arguments"), str):
                yield f"Invalid type for 'messages[{i}].tool_calls[0].function.arguments': expected a string."
    yield from _unanswered_chat(open_ids)


def _unanswered_chat(ids: list[str]) -> Iterator[str]:
    if ids:
        yield (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
            f"The following tool_call_ids did not have response messages: {', '.join(map(str, ids))}"
        )


def _anthropic(payload: Mapping[str, Any]) -> Iterator[str]:
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    spoken = [(i, m) for i, m in enumerate(messages) if m.get("role") != "system"]
    if spoken and spoken[0][1].get("role") != "user" and not _has(spoken[0][1], "compaction"):
        yield 'messages: first message must use the "user" role'
    yield from _anthropic_content(spoken)
    yield from _anthropic_pairs(_merged(spoken))
    if json.dumps([payload.get("system"), payload.get("tools"), messages]).count('"cache_control": {') > MOST_CACHE_MARKERS:
        yield "A maximum of 4 blocks with cache_control may be provided."
    if not payload.get("tools") and any(b.get("type") == "tool_use" for _, m in spoken for b in _blocks(m)):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"
    thinking = payload.get("thinking") or {}
    if thinking.get("type") == "enabled":
        yield from _thinking([m for _, m in spoken])


def _anthropic_content(spoken: list[tuple[int, Mapping[str, Any]]]) -> Iterator[str]:
    for i, m in spoken:
        blocks = _blocks(m)
        last = m is spoken[-1][1]
        if not blocks and not (last and m["role"] == "assistant"):
            yield f"messages.{i}: all messages must have non-empty content except for the optional final assistant message"
        for b in blocks:
            if b.get("type") == "text" and not str(b.get("text") or "").strip():
                yield "messages: text content blocks must contain non-whitespace text"
            if b.get("type") == "thinking":
                signature = str(b.get("signature") or "")
                if signature.startswith(SIGNATURE_PREFIX) and signature != sign(b.get("thinking", "")):
                    yield f"messages.{i}: `thinking` blocks cannot be modified. Invalid `signature` in `thinking` block"
        if last and m["role"] == "assistant" and blocks and blocks[-1].get("type") == "text":
            text = blocks[-1].get("text") or ""
            if text != text.rstrip():
                yield "messages: final assistant content cannot end with trailing whitespace"


def _anthropic_pairs(turns: list[tuple[str, list[Mapping[str, Any]]]]) -> Iterator[str]:
    seen: set[str] = set()
    open_ids: list[str] = []
    for role, blocks in turns:
        results = [b.get("tool_use_id", "") for b in blocks if b.get("type") == "tool_result"]
        for tool_id in results:
            if role != "user" or tool_id not in open_ids:
                yield (
                    f"unexpected `tool_use_id` found in `tool_result` blocks: {tool_id}. Each `tool_result` block must "
                    "have a corresponding `tool_use` block in the previous message."
                )
            if results.count(tool_id) > 1:
                yield f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {tool_id}"
        if set(open_ids) - set(results):
            yield (
                "`tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(sorted(set(open_ids) - set(results)))}."
            )
        kinds = [b.get("type") == "tool_result" for b in blocks]
        if role == "user" and True in kinds and False in kinds[: len(kinds) - kinds[::-1].index(True)]:
            yield "tool_result blocks must come before any other content of the message"
        open_ids = [b.get("id", "") for b in blocks if b.get("type") == "tool_use"]
        if len(open_ids) != len(set(open_ids)) or seen & set(open_ids):
            yield "messages: `tool_use` ids must be unique"
        seen |= set(open_ids)
    if open_ids:
        yield f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(open_ids)}."


def _thinking(messages: list[Mapping[str, Any]]) -> Iterator[str]:
    """With thinking enabled, every answer inside the current tool loop starts with its thinking."""
    asked = max((i for i, m in enumerate(messages) if m["role"] == "user" and not _has(m, "tool_result")), default=-1)
    for m in messages[asked + 1 :]:
        begins = _blocks(m)[0].get("type") if m["role"] == "assistant" and _has(m, "tool_use") else "thinking"
        if begins not in {"thinking", "redacted_thinking"}:
            yield "Expected `thinking` or `redacted_thinking`, but found `tool_use`."


def _responses(payload: Mapping[str, Any], came: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from _flat_tools(payload.get("tools") or ())
    items = payload.get("input")
    if isinstance(items, str):
        return
    if not isinstance(items, list) or not items:
        yield "Missing required parameter: 'input'."
        return
    paired: dict[str, list[str]] = {}
    for item in items:
        paired.setdefault(_pair_id(item), []).append(str(item.get("type")))
    stored = payload.get("previous_response_id") or payload.get("conversation") or any(map(_is_reference, items))
    for call_id, kinds in paired.items():
        kind = kinds[0].replace("_", " ")
        if call_id and not stored and all(kind.endswith("_output") for kind in kinds):
            yield f"No tool call found for {kind} with call_id {call_id}."
        if call_id and kinds == [kinds[0]] and not kinds[0].endswith("_output"):
            yield f"No tool output found for {kind} {call_id}."
    if any(item.get("type") == "compaction_trigger" for item in items[:-1]):
        yield "Invalid 'input': 'compaction_trigger' must be the final input item."
    yield from _reasoning(items, _thoughts(items, came), is_kept=payload.get("store") is not False)


def _pair_id(item: Mapping[str, Any]) -> str:
    """Return what a call and its output have in common; OpenAI's server runs calls without, and `mcp_call` needs none."""
    return str(item.get("call_id") or (item.get("type") == "local_shell_call_output" and item.get("id")) or "")


def _is_reference(item: Mapping[str, Any]) -> bool:
    return item.get("type") == "item_reference" or not item.keys() - {"id"}


def _flat_tools(tools: Iterable[Any]) -> Iterator[str]:
    for i, tool in enumerate(tools):
        if tool.get("type") != "function":
            continue
        if not tool.get("name"):
            yield f"Missing required parameter: 'tools[{i}].name'."
        elif tool.get("strict") and (tool.get("parameters") or {}).get("additionalProperties") is not False:
            yield (
                f"Invalid schema for function '{tool['name']}': In context=(), 'additionalProperties' is required to be "
                "supplied and to be false."
            )


def _reasoning(items: list[Mapping[str, Any]], thoughts: Mapping[Any, str], *, is_kept: bool) -> Iterator[str]:
    """Refuse altered or unknown reasoning, an item without its reasoning, and reasoning without its item."""
    ids = {item.get("id") for item in items}
    for item, after in zip(items, [*items[1:], {"role": "user"}], strict=True):
        item_id, kind = str(item.get("id") or ""), item.get("type") or "message"
        if kind == "reasoning":
            encrypted = item.get("encrypted_content")
            if not encrypted and not is_kept:
                yield (
                    f"Item '{item_id}' not found. Items are not persisted when `store` is set to false. Try again with "
                    "`store` set to true, or remove this item from your input."
                )
            summary = "".join(part.get("text") or "" for part in item.get("summary") or ())
            if str(encrypted or "").startswith(SIGNATURE_PREFIX) and encrypted != sign(summary):
                yield f"The encrypted content for item {item_id} could not be verified."
            if not _is_models(after) or thoughts.get(after.get("id"), item_id) != item_id:
                yield f"Item '{item_id}' of type 'reasoning' was provided without its required following item."
        needed = thoughts.get(item_id)
        if needed and needed not in ids:
            yield f"Item '{item_id}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'."


def _is_models(item: Mapping[str, Any]) -> bool:
    """Whether the model wrote the item, of any type: neither a client nor a tool did."""
    return item.get("role", "assistant") == "assistant" and not str(item.get("type")).endswith(
        ("_output", "_result", "_response")
    )


def _thoughts(items: Iterable[Mapping[str, Any]], came: Iterable[Mapping[str, Any]]) -> dict[Any, str]:
    """Return the reasoning that each item needs, by its id: the one that its id names, or the one before it in the received items.

    OpenAI knows it by the ids, and pairs no item without one (openai/openai-agents-python#3207, TanStack/ai#1365).
    """
    named = ((item.get("id"), str(item.get("id")).partition("_rs_")) for item in items)
    found = {item_id: f"rs_{rest.rpartition('_')[0]}" for item_id, (_, mark, rest) in named if mark}
    thought = ""
    for item in came:
        if item.get("type") == "reasoning" or not _is_models(item):
            thought = str(item.get("id") or "") if item.get("type") == "reasoning" else ""
        elif item.get("id") and thought:
            found[item["id"]] = thought
    return found


def _merged(spoken: list[tuple[int, Mapping[str, Any]]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Join neighbours of one role, as the server does."""
    turns: list[tuple[str, list[Mapping[str, Any]]]] = []
    for _, m in spoken:
        if turns and turns[-1][0] == m["role"]:
            turns[-1][1].extend(_blocks(m))
        else:
            turns.append((m["role"], list(_blocks(m))))
    return turns


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [b for b in content or [] if isinstance(b, Mapping)]


def _has(message: Mapping[str, Any], kind: str) -> bool:
    return any(b.get("type") == kind for b in _blocks(message))
