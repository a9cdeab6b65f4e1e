"""Local servers with protocols of their own: Ollama, and Text Generation Inference as Predibase serves it.

Ollama has lines of JSON, arguments as objects, and pairs calls and results only by their order. Text Generation Inference
has one prompt, and a stream whose refusal is an event of a 200 answer.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.provider import Payload, Protocol
from protocols.openai_messages import json_line

Form = Callable[[str], dict[str, Any]]
"""What an answer says, in the shape of a path."""
ROLES = {"system", "user", "assistant", "tool"}


def _read_chat(body: Payload, _path: str) -> dict[str, Any]:
    """Return the request with an id for each call and result, which Ollama has none of."""
    calls = results = 0
    messages = []
    for m in body.get("messages") or []:
        message = {"role": m.get("role"), "content": m.get("content")}
        if m.get("tool_calls"):
            message["tool_calls"] = [_numbered(call, calls + n) for n, call in enumerate(m["tool_calls"])]
            calls += len(m["tool_calls"])
        if m.get("role") == "tool":
            message["tool_call_id"] = str(results)
            results += 1
        messages.append(message)
    return {**_read(body), "messages": messages, "tools": body.get("tools")}


def _numbered(call: Mapping[str, Any], number: int) -> dict[str, Any]:
    function = {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}
    return {"id": str(number), "type": "function", "function": function}


def _read_generate(body: Payload, _path: str) -> dict[str, Any]:
    return {**_read(body), "messages": [{"role": "user", "content": body.get("prompt")}]}


def _read(body: Payload) -> dict[str, Any]:
    """Return what both requests hold; a request that does not say otherwise is streamed."""
    limit = (body.get("options") or {}).get("num_predict")
    return {"model": body.get("model"), "stream": body.get("stream", True), "max_tokens": limit}


def _broken(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    for message in body.get("messages") or []:
        if message.get("role") not in ROLES:
            yield f"invalid role: {message.get('role')}"
        if not isinstance(message.get("content", ""), str):
            yield "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
        for call in message.get("tool_calls") or []:
            if not isinstance(call["function"].get("arguments"), Mapping):
                yield (
                    "json: cannot unmarshal string into Go struct field "
                    "ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments"
                )


def _end(tokens: int) -> dict[str, Any]:
    return {"done": True, "done_reason": "stop", "prompt_eval_count": tokens, "eval_count": streams.OUTPUT_TOKENS}


def _head(payload: Payload) -> dict[str, Any]:
    return {"model": payload.get("model"), "created_at": "2026-01-01T00:00:00Z"}


def _said(text: str) -> dict[str, Any]:
    return {"message": {"role": "assistant", "content": text}}


def _generated(text: str) -> dict[str, Any]:
    return {"response": text}


def _whole(form: Form, payload: Payload, reply: Reply, tokens: int, _cached: int) -> dict[str, Any]:
    return {**_head(payload), **form(reply.text), **_end(tokens)}


def _lines(form: Form, payload: Payload, reply: Reply, tokens: int, _cached: int) -> Iterator[str]:
    for word in reply.text.split(" "):
        yield json_line({**_head(payload), **form(word + " "), "done": False})
    yield json_line({**_head(payload), **form(""), **_end(tokens)})


CHAT = Protocol(
    paths=("/api/chat",),
    fmt="openai-chat",
    read=_read_chat,
    violations=_broken,
    refused=lambda message: {"error": message},
    whole=partial(_whole, _said),
    stream=partial(_lines, _said),
    failed=lambda _payload, body, _settings: [json_line(body)],
    media_type="application/x-ndjson",
)
GENERATE = replace(
    CHAT,
    paths=("/api/generate",),
    read=_read_generate,
    violations=lambda _body, _headers: (),
    whole=partial(_whole, _generated),
    stream=partial(_lines, _generated),
)


def _read_inputs(body: Payload, path: str) -> dict[str, Any]:
    """Return the prompt as a user's message; what the parameters say is no part of the input."""
    limit = (body.get("parameters") or {}).get("max_new_tokens")
    said = [{"role": "user", "content": body.get("inputs")}]
    return {"model": path.split("/")[-2], "stream": path.endswith("_stream"), "messages": said, "max_tokens": limit}


def _whole_text(_payload: Payload, reply: Reply, tokens: int, _cached: int) -> dict[str, Any]:
    details = {"finish_reason": "eos_token", "generated_tokens": streams.OUTPUT_TOKENS, "prefill": [], "tokens": []}
    return {"generated_text": reply.text, "details": {**details, "prompt_tokens": tokens}}


def _tokens(_payload: Payload, reply: Reply, _tokens: int, _cached: int) -> Iterator[str]:
    words = [word + " " for word in reply.text.split(" ")]
    for number, word in enumerate(words):
        last = number == len(words) - 1
        token = {"id": number, "text": word, "logprob": 0.0, "special": False}
        details = {"finish_reason": "eos_token", "generated_tokens": len(words)} if last else None
        yield streams.sse({"token": token, "generated_text": reply.text if last else None, "details": details})


TEXT_GENERATION = Protocol(
    paths=("/{tenant}/deployments/v2/llms/{model}/generate", "/{tenant}/deployments/v2/llms/{model}/generate_stream"),
    fmt="openai-chat",
    read=_read_inputs,
    refused=lambda message: {"error": message, "error_type": "validation"},
    whole=_whole_text,
    stream=_tokens,
    failed=lambda _payload, body, _settings: [streams.sse(body)],
)
