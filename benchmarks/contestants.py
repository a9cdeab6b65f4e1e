"""The contestants: this package, keeping the newest messages, and the peers that are installed."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import ctx_hooks
from ctx_hooks.tokens.counter import encoding

Contestant = Callable[[list[Any], Any, str, int], list[Any]]
"""Called with messages, tools, format and budget in tokens; returns the messages to send."""
MODEL = "gpt-4"
SUMMARISED = "langchain SummarizationMiddleware"
"""Its name, since it alone replaces the history that its client goes on with."""
MESSAGE_TOKENS = 4
UNMASKED_MESSAGES = 4
MASK = "[old result removed to save space]"


@lru_cache(maxsize=200_000)
def tokens(text: str) -> int:
    """Return the cl100k_base tokens of `text`."""
    return len(encoding("cl100k_base").encode_ordinary(text))


def text_of(value: Any) -> str:
    """Return all text in a JSON value, without ids, roles, types, signatures and cache markers."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, Mapping):
        silent = {"id", "role", "type", "tool_use_id", "tool_call_id", "call_id", "signature", "cache_control"}
        return "\n".join(text_of(v) for k, v in value.items() if k not in silent)
    return "\n".join(map(text_of, value)) if isinstance(value, (list, tuple)) else str(value)


def size(messages: list[Any]) -> int:
    """Return the tokens of messages, all formats counted alike."""
    return sum(tokens(text_of(m)) + MESSAGE_TOKENS for m in messages)


def single_fit(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """ctx_hooks.compress to a budget."""
    return ctx_hooks.compress(
        messages, format=fmt, budget_tokens=budget, window_tokens=budget * 5 // 4, tools=tools, model=MODEL
    ).messages


def replayed(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """ctx_hooks.compress as the proxy's hooks use it: compacted along the way, the prefix stable in between."""
    return ctx_hooks.compress(
        messages,
        format=fmt,
        budget_tokens=budget,
        target_tokens="auto",
        window_tokens=budget * 5 // 4,
        tools=tools,
        model=MODEL,
    ).messages


def keep_newest(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """System text and the newest messages that fit, then whatever a cut left without its call."""
    del tools
    head = [m for m in messages[:1] if m.get("role") == "system"]
    room = budget - size(head)
    start = len(messages)
    while start > len(head) and room >= (price := size(messages[start - 1 : start])):
        room -= price
        start -= 1
    return head + ctx_hooks.repair(messages[start:], format=fmt).messages


def masking(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """Observation masking: the oldest results become a line until the rest fits; then the newest messages that fit."""
    sent = list(messages)
    used = size(sent)
    for i, message in enumerate(sent[:-UNMASKED_MESSAGES]):
        if used <= budget:
            break
        content = message.get("content")
        if message["role"] == "tool":
            sent[i] = message | {"content": MASK}
        elif isinstance(content, list):
            blocks = [b | {"content": MASK} if b.get("type") == "tool_result" else b for b in content]
            sent[i] = message | {"content": blocks}
        used += size(sent[i : i + 1]) - size([message])
    return sent if used <= budget else keep_newest(sent, tools, fmt, budget)


def litellm_compress(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """litellm.compress with the budget as trigger and target."""
    import litellm  # noqa: PLC0415 - slow to import and only needed here

    del tools
    kind = "anthropic_messages" if fmt == "anthropic" else "completion"
    return litellm.compress(messages, MODEL, call_type=kind, compression_trigger=budget, compression_target=budget)[
        "messages"
    ]


def compression_interception(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """LiteLLM's callback of that name with the budget as its trigger; its target is its default, 0.7 of that."""
    from litellm.integrations.compression_interception import CompressionInterceptionLogger  # noqa: PLC0415
    from litellm.types.utils import CallTypes  # noqa: PLC0415

    del tools
    if fmt != "anthropic":
        raise NotImplementedError(fmt)
    request = {"messages": messages, "model": MODEL}
    hook = CompressionInterceptionLogger(compression_trigger=budget).async_pre_call_deployment_hook
    asyncio.run(hook(request, CallTypes.anthropic_messages))
    return request["messages"]


def clear_tool_uses(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """Edit as Anthropic does, by LiteLLM's own code for other providers, with the budget as its trigger."""
    from litellm.llms.anthropic.pass_through.context_management.editors import (  # noqa: PLC0415
        apply_clear_tool_uses_20250919,
    )

    if fmt != "anthropic":
        raise NotImplementedError(fmt)
    edit = {"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": budget}}
    return apply_clear_tool_uses_20250919(model=MODEL, messages=messages, tools=tools, system=None, edit_spec=edit)[0]


def litellm_trim(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """litellm.utils.trim_messages, for chat only."""
    from litellm.utils import trim_messages  # noqa: PLC0415

    del tools
    if fmt != "openai-chat":
        raise NotImplementedError(fmt)
    return trim_messages(copy.deepcopy(messages), MODEL, trim_ratio=1.0, max_tokens=budget)


def headroom(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """headroom.compress with the budget as the model's limit; it knows no budget of its own."""
    from headroom import compress  # noqa: PLC0415

    del tools, fmt
    return compress(copy.deepcopy(messages), model="gpt-4o", model_limit=budget).messages


def langchain_trim(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """langchain_core's trim_messages, strategy last, for chat only."""
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages, trim_messages  # noqa: PLC0415

    del tools
    if fmt != "openai-chat":
        raise NotImplementedError(fmt)
    kept = trim_messages(
        convert_to_messages(copy.deepcopy(messages)),
        max_tokens=budget,
        strategy="last",
        include_system=True,
        token_counter=lambda found: sum(
            tokens(json.dumps(m.content)) + tokens(json.dumps(m.additional_kwargs)) for m in found
        ),
    )
    return convert_to_openai_messages(kept)


def langchain_editing(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """Edit as LangChain's ContextEditingMiddleware does, with the budget as its trigger, for chat only."""
    from langchain.agents.middleware import ClearToolUsesEdit  # noqa: PLC0415
    from langchain_core.messages import convert_to_messages, convert_to_openai_messages  # noqa: PLC0415
    from langchain_core.messages.utils import count_tokens_approximately  # noqa: PLC0415

    del tools
    if fmt != "openai-chat":
        raise NotImplementedError(fmt)
    edited = convert_to_messages(copy.deepcopy(messages))
    ClearToolUsesEdit(trigger=budget).apply(edited, count_tokens=count_tokens_approximately)
    return convert_to_openai_messages(edited)


def langchain_summary(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
    """LangChain's SummarizationMiddleware with the budget as its trigger, for chat only.

    The summary that a model would write is left empty; the system text stands apart, as in LangChain's agents.
    """
    from langchain.agents.middleware import SummarizationMiddleware  # noqa: PLC0415
    from langchain_core.language_models import FakeListChatModel  # noqa: PLC0415
    from langchain_core.messages import RemoveMessage, convert_to_messages, convert_to_openai_messages  # noqa: PLC0415
    from langgraph.runtime import Runtime  # noqa: PLC0415

    del tools
    if fmt != "openai-chat":
        raise NotImplementedError(fmt)
    head = [m for m in messages[:1] if m.get("role") == "system"]
    state = {"messages": convert_to_messages(copy.deepcopy(messages[len(head) :]))}
    model = FakeListChatModel(responses=[""])
    middleware = SummarizationMiddleware(model, trigger=("tokens", budget), summarizer=lambda _: "")
    changed = middleware.before_model(state, Runtime()) or state
    return head + convert_to_openai_messages([m for m in changed["messages"] if not isinstance(m, RemoveMessage)])


def installed() -> dict[str, Contestant]:
    """Return the contestants whose packages are installed."""
    found: dict[str, Contestant] = {
        "ctx_hooks, a session": replayed,
        "ctx_hooks, one fit": single_fit,
        "keep newest": keep_newest,
        "masking": masking,
        "litellm.compress": litellm_compress,
        "compression_interception": compression_interception,
        "clear_tool_uses by LiteLLM": clear_tool_uses,
        "litellm.trim_messages": litellm_trim,
    }
    if find_spec("headroom"):
        found["headroom"] = headroom
    if find_spec("langchain_core"):
        found["langchain trim_messages"] = langchain_trim
    if find_spec("langchain"):
        found["langchain ContextEditingMiddleware"] = langchain_editing
        found[SUMMARISED] = langchain_summary
    return found
