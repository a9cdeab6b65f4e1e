"""Builders of conversations that look like an agent's: valid under every rule, the same for the same seed."""

import json
import random
from typing import Any

from ctx_hooks.testing import gemini
from ctx_hooks.testing.behaviour import Format
from ctx_hooks.testing.rules import sign

_WORDS = [
    "parse", "index", "cache", "token", "buffer", "router", "schema", "commit", "branch", "handler", "policy", "window",
    "stream", "record", "merge", "signal", "worker", "queue", "shard", "replica", "latency", "budget", "header",
    "payload", "retry", "client", "server", "module", "config", "adapter", "session", "cursor", "digest",
]  # fmt: skip
TOOL = "read_file"


def read_tool(fmt: Format) -> dict[str, Any]:
    """Return the definition of the tool that the sessions call."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    named = {"name": TOOL, "description": "Read a file and return its text."}
    tools: dict[str, dict[str, Any]] = {
        "openai-chat": {"type": "function", "function": {**named, "parameters": schema}},
        "anthropic": {**named, "input_schema": schema},
        "openai-responses": {"type": "function", **named, "parameters": schema},
        "gemini": {"functionDeclarations": [{**named, "parametersJsonSchema": schema}]},
    }
    return tools[fmt]


def source_text(rng: random.Random, chars: int) -> str:
    """Return text that looks like a source file of about `chars` characters."""
    lines, size = [], 0
    while size < chars:
        a, b, c = (rng.choice(_WORDS) for _ in range(3))
        line = f"    def {a}_{b}_{rng.randrange(1000)}(self, {c}: int) -> str:  # see {a}/{b}_{c}.py:{rng.randrange(400)}"
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines)


def agent_session(
    fmt: Format,
    *,
    turns: int = 20,
    result_chars: int = 4_000,
    seed: int = 0,
    thinking: bool = False,
    model: str = "model",
    question: str = "Now summarise what you found.",
) -> dict[str, Any]:
    """Return the payload of an agent that read `turns` files and is asked a last question."""
    rng = random.Random(seed)  # noqa: S311 - conversations, not secrets
    messages: list[dict[str, Any]] = [asked(fmt, f"Review project {seed} and note every risk.")]
    for n in range(turns):
        path = f"src/{rng.choice(_WORDS)}/{rng.choice(_WORDS)}_{n}.py"
        call_id = f"call_{seed}_{n}"
        said = f"I will look at {path} next."
        messages += exchange(fmt, call_id, path, said, source_text(rng, result_chars), thinking=thinking)
    messages.append(asked(fmt, question))
    instructions = "You are a careful reviewer."
    fields: dict[str, dict[str, Any]] = {
        "openai-chat": {"messages": [{"role": "system", "content": instructions}, *messages]},
        "anthropic": {"messages": messages, "system": instructions, "max_tokens": 256},
        "openai-responses": {"input": messages, "instructions": instructions},
        "gemini": {"contents": messages, "systemInstruction": {"parts": [{"text": instructions}]}},
    }
    return {"model": model, "tools": [read_tool(fmt)], **fields[fmt]}


def asked(fmt: Format, text: str) -> dict[str, Any]:
    """Return a user's message."""
    return {"role": "user", "parts": [{"text": text}]} if fmt == "gemini" else {"role": "user", "content": text}


def exchange(fmt: Format, call_id: str, path: str, said: str, result: str, *, thinking: bool) -> list[dict[str, Any]]:
    """Return the messages of a call of the tool and its result; with `thinking`, the model thinks before the call."""
    arguments = {"path": path}
    thought = f"The file {path} may hold a risk."
    if fmt == "openai-chat":
        thoughts = {"reasoning_content": thought} if thinking else {}
        call = {"id": call_id, "type": "function", "function": {"name": TOOL, "arguments": json.dumps(arguments)}}
        return [
            {"role": "assistant", "content": said, **thoughts, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": result},
        ]
    if fmt == "anthropic":
        blocks: list[dict[str, Any]] = []
        if thinking:
            blocks.append({"type": "thinking", "thinking": thought, "signature": sign(thought)})
        blocks += [{"type": "text", "text": said}, {"type": "tool_use", "id": call_id, "name": TOOL, "input": arguments}]
        return [
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": result}]},
        ]
    if fmt == "gemini":
        called: dict[str, Any] = {"functionCall": {"name": TOOL, "args": arguments}}
        parts = [{"text": thought, "thought": True}] if thinking else []
        if thinking:
            called["thoughtSignature"] = gemini.sign(called)
        answer = {"functionResponse": {"name": TOOL, "response": {"output": result}}}
        return [{"role": "model", "parts": [*parts, {"text": said}, called]}, {"role": "user", "parts": [answer]}]
    item = {"type": "reasoning", "id": f"rs_{call_id}", "summary": [{"type": "summary_text", "text": thought}]}
    return [
        *([item] if thinking else []),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": said}]},
        {"type": "function_call", "call_id": call_id, "name": TOOL, "arguments": json.dumps(arguments)},
        {"type": "function_call_output", "call_id": call_id, "output": result},
    ]
