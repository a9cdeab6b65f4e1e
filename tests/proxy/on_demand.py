"""Anthropic's compaction on demand: one summary instead of an answer, in a signed block that stays first and unchanged.

https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.provider import Payload, Protocol
from ctx_hooks.testing.rules import SIGNATURE_PREFIX, sign

BETA = "compact-2026-09-04"


def _broken(payload: Payload, headers: Mapping[str, str]) -> Iterator[str]:
    asks = payload.get("compaction") is not None
    placed = [(i, k, b) for i, m in enumerate(payload.get("messages") or ()) for k, b in _signed(m)]
    if (asks or placed) and BETA not in headers.get("anthropic-beta", ""):
        yield f"compaction: requires anthropic-beta: {BETA}"
    if asks and (payload.get("context_management") or payload.get("stop_sequences")):
        yield "compaction: cannot be combined with context_management or stop_sequences"
    for i, k, block in placed:
        if (i, k) != (0, 0):
            yield f"messages.{i}.content.{k}: compaction_block_misplaced"
        if block["signature"].startswith(SIGNATURE_PREFIX) and block["signature"] != sign(block.get("content") or ""):
            yield f"messages.{i}.content.{k}: compaction_content_mismatch"


def _signed(message: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    content = message.get("content")
    for k, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, Mapping) and block.get("type") == "compaction" and block.get("signature"):
            yield k, block


def _whole(payload: Payload, reply: Reply, tokens: int, cached: int) -> dict[str, Any]:
    """Return an answer; to a request for a summary the reply's text, whose bill is in `usage.iterations` only."""
    message = streams.whole("anthropic", payload, reply, tokens, cached)
    if payload.get("compaction") is None:
        return message
    block = {"type": "compaction", "content": reply.text, "signature": sign(reply.text)}
    iterations = [{"type": "compaction", "input_tokens": tokens, "output_tokens": streams.OUTPUT_TOKENS}]
    usage = {"input_tokens": 0, "output_tokens": 0, "iterations": iterations}
    return {**message, "content": [block], "stop_reason": "compaction", "usage": usage}


ON_DEMAND = Protocol(paths=("/v1/messages",), fmt="anthropic", violations=_broken, whole=_whole)
