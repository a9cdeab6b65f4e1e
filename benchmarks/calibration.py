"""How far token figures are from provider tokens: local tokens calibrated, local tokens, and litellm.token_counter.

    uv run --group bench python benchmarks/calibration.py [SESSIONS.jsonl...]

First for providers with a tokenizer of their own: a factor over cl100k, 3 % noise by content, a fixed overhead per message
and tool. Then for sessions whose `meta.api_usage` lists [messages sent, input tokens, output tokens] of each answer, the
error of the growth from one such turn to the next: the session's file lacks the system prompt and tools that the provider
counted.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

from litellm import token_counter

from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.learning.calibration import family_factor, observed
from ctx_hooks.testing import ProviderSettings, agent_session
from ctx_hooks.testing.counting import count_payload
from ctx_hooks.tokens.counter import Counter, vocabulary_of

FACTORS = (0.9, 1.17, 1.31)
LEARNED_FROM = 10
JUDGED_ON = 40
COMPACTED_FRACTION = 0.9
"""Provider tokens that fall below this share of those before follow a compaction of the client's own."""


def synthetic(factor: float) -> list[float]:
    """Return the relative errors after ten requests of different conversations."""
    draw = random.Random(int(factor * 100))
    provider = ProviderSettings(
        tokens_factor=factor, noise_fraction=0.03, message_overhead_tokens=7, tool_overhead_tokens=20
    )
    counter, codec = Counter(vocabulary_of("claude")), WIRE_FORMATS["openai-chat"]
    ratios: tuple[float, ...] = ()
    errors = []
    for n in range(LEARNED_FROM + JUDGED_ON):
        payload = agent_session("openai-chat", turns=draw.randrange(3, 60), result_chars=draw.randrange(200, 4_000), seed=n)
        counted = counter.conversation(codec.read(payload["messages"], tools=payload.get("tools")))
        provider_tokens = count_payload("openai-chat", payload, provider)
        if n >= LEARNED_FROM:
            errors.append(abs(counted * ratios[0] / provider_tokens - 1))
        ratios = observed(ratios, counted, provider_tokens)
    return sorted(errors)


def billed_turns(session: dict[str, Any]) -> list[tuple[int, int]]:
    """Return (number of messages sent, provider's input tokens) of each answer with usage."""
    return [(int(row[0]), int(row[1])) for row in session.get("meta", {}).get("api_usage") or []]


def growth_errors(session: dict[str, Any]) -> dict[str, list[float]]:
    """Return each counter's relative errors of the growth between turns with usage."""
    fmt, messages = session["format"], session["messages"]
    counter, codec = Counter(vocabulary_of("claude")), WIRE_FORMATS[fmt]
    ratios: tuple[float, ...] = ()
    errors: dict[str, list[float]] = {"calibrated": [], "tiktoken": [], "litellm.token_counter": []}
    turns = billed_turns(session)
    for (start, before), (end, after) in pairwise(turns):
        if end <= start or after <= before or after < COMPACTED_FRACTION * before:
            continue
        new = messages[start:end]
        counted = counter.conversation(codec.read(new))
        grown = after - before
        factor = ratios[0] if ratios else family_factor("claude")
        errors["calibrated"].append(abs(counted * factor / grown - 1))
        errors["tiktoken"].append(abs(counted / grown - 1))
        errors["litellm.token_counter"].append(abs(token_counter(model="claude-sonnet-4-5", messages=new) / grown - 1))
        ratios = observed(ratios, counted, grown)
    return errors


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args()
    print(f"{'factor':>8}{'median error':>14}{'95th percentile':>17}")
    for factor in FACTORS:
        errors = synthetic(factor)
        print(f"{factor:8.2f}{statistics.median(errors):14.3f}{errors[int(0.95 * len(errors))]:17.3f}")
    together: dict[str, list[float]] = {}
    for path in arguments.paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            for name, errors in growth_errors(json.loads(line)).items():
                together.setdefault(name, []).extend(errors)
    for name, errors in together.items():
        if errors:
            print(f"growth, {name:24}{statistics.median(errors):8.3f} median of {len(errors)} turns with usage")


if __name__ == "__main__":
    main()
