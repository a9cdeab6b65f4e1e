"""Anthropic's compaction on demand, as its documentation has it: one summary instead of an answer, in a signed block.

https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.provider import Payload, Protocol
from ctx_hooks.testing.rules import SIGNATURE_PREFIX, sign

BETA = "compact-2026-09-04"
FIELDS = frozenset({"type", "content", "signature", "cache_control"})
REJECTED = ("context_management", "stop_sequences")
"""What may not stand beside `compaction`: the first would compact too, the other would do nothing."""


def _broken(payload: Payload, headers: Mapping[str, str]) -> Iterator[str]:
    blocks = [(i, k, b) for i, m in enumerate(payload.get("messages") or ()) for k, b in _signed(m)]
    betas = headers.get("anthropic-beta", "")
    if payload.get("compaction") is not None:
        if BETA not in betas:
            yield f"compaction: requires anthropic-beta: {BETA}"
        yield from (f"compaction: cannot be combined with {name}" for name in REJECTED if payload.get(name))
        if (payload.get("tool_choice") or {}).get("type") in ("any", "tool"):
            yield "compaction: cannot be combined with tool_choice"
    if blocks and BETA not in betas:
        yield "messages.0.content.0: Input tag 'compaction' found using 'type' does not match any of the expected tags"
    if len(blocks) > 1:
        yield "messages: at most one compaction block is allowed"
    for i, k, block in blocks:
        if (i, k) != (0, 0):
            yield f"messages.{i}.content.{k}: compaction_block_misplaced"
        if block["signature"].startswith(SIGNATURE_PREFIX) and block["signature"] != sign(block.get("content") or ""):
            yield f"messages.{i}.content.{k}: compaction_content_mismatch"
        yield from (
            f"messages.{i}.content.{k}.compaction.{name}: Extra inputs are not permitted" for name in {*block} - FIELDS
        )


def _whole(payload: Payload, reply: Reply, tokens: int, cached: int) -> dict[str, Any]:
    """Return an answer; to a request for a summary the reply's text, and none without one or with a call.

    The bill is in `usage.iterations` only.
    """
    message = streams.whole("anthropic", payload, reply, tokens, cached)
    if payload.get("compaction") is None:
        return message
    stop = "tool_use" if reply.calls else "compaction" if reply.text else "end_turn"
    block = {"type": "compaction", "content": reply.text, "signature": sign(reply.text)}
    iterations = [{"type": "compaction", "input_tokens": tokens, "output_tokens": streams.OUTPUT_TOKENS}]
    usage = {"input_tokens": 0, "output_tokens": 0, "iterations": iterations}
    return {**message, "content": [block] if stop == "compaction" else [], "stop_reason": stop, "usage": usage}


def _events(payload: Payload, reply: Reply, tokens: int, cached: int) -> Iterator[str]:
    """Yield the events of an answer; a summary's block arrives whole."""
    if payload.get("compaction") is None:
        yield from map(streams.sse, streams.anthropic_events(payload, reply, tokens, cached))
    else:
        yield from map(streams.sse, _summary_events(_whole(payload, reply, tokens, cached)))


def _summary_events(answered: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": {**answered, "content": [], "stop_reason": None}}
    for i, block in enumerate(answered["content"]):
        yield {"type": "content_block_start", "index": i, "content_block": block}
        yield {"type": "content_block_stop", "index": i}
    stop = {"stop_reason": answered["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": answered["usage"]}
    yield {"type": "message_stop"}


def _signed(message: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    content = message.get("content")
    for k, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, Mapping) and block.get("type") == "compaction" and block.get("signature"):
            yield k, block


ON_DEMAND = Protocol(
    paths=("/v1/messages",),
    fmt="anthropic",
    violations=_broken,
    whole=_whole,
    stream=_events,
)
