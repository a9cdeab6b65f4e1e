"""Write events of an invented week, to look at `ctx-hooks report` without a proxy.

    python benchmarks/report_events.py FOLDER [--requests 20000]
    ctx-hooks report FOLDER -o report.html

Conversations grow turn by turn; what does not fit is compacted, and stays compacted. One team is observed until Thursday.
"""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_hooks.compaction import pipeline
from ctx_hooks.compaction.pipeline import StepReport
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, FailureEvent, LimitEvent, OverflowEvent
from ctx_hooks.telemetry.figures import CallNames
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens
from ctx_hooks.tokens.usage import Billed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_hooks.policy.settings import Mode
    from ctx_hooks.telemetry.listeners import Event

MONDAY = 1_762_732_800
DAY = 86_400
MODELS = {"claude-sonnet": (200_000, 3e-6), "gpt-main": (128_000, 2e-6), "qwen-local": (32_768, 2e-7)}
TEAMS = ("Research", "Platform", "Support agents", "Data", "")
CLIENTS = ("claude-cli/2.1.4", "codex_cli_rs/0.58", "opencode/1.0.3", "OpenAI/Python", "langgraph/0.6")
STEPS = (*pipeline.STEPS[:3], pipeline.STEPS[5])
"""As they save most to least, from the last."""


def session(rng: random.Random, number: int, at: float) -> Iterator[Event]:
    """Yield the events of one conversation."""
    model = rng.choices(list(MODELS), weights=(5, 3, 2))[0]
    window, price = MODELS[model]
    team = rng.choices(TEAMS, weights=(5, 4, 3, 2, 1))[0]
    client = rng.choice(CLIENTS)
    tokens, sent_before, dropped = rng.randint(2_000, 30_000), 0, 0
    for turn in range(rng.randint(3, 60)):
        at += rng.expovariate(1 / 60)
        tokens += round(rng.lognormvariate(7.6, 1.1))
        mode: Mode = "observe" if team == "Research" and at < MONDAY + 3 * DAY else "enforce"
        name = f"{number:05x}-{turn}"
        call = CallNames(
            name, name, model, f"id:{model}", model, team, team, "", "", "acompletion", client, "", f"{number:04x}"[-4:]
        )
        budget = window - 16_384
        compacts = tokens - dropped > budget
        if compacts:
            dropped = tokens - budget // 2
        kept = tokens - dropped
        surprise = rng.random() < 0.004
        yield decision(rng, at, call, mode, tokens, kept, window)
        if surprise or (mode == "observe" and tokens > window):
            yield OverflowEvent("overflow", at + 1, call, mode, 0, "input", window, tokens)
            if mode == "observe" or rng.random() < 0.1:
                yield FailureEvent("failure", at + 1, call, mode, 1)
                return
            kept = round(kept * 0.6)
            dropped = tokens - kept
            yield decision(rng, at + 1.5, call, mode, tokens, kept, window, "retried", 1)
        whole = tokens if mode == "observe" else kept
        cached = 0 if compacts and mode == "enforce" else min(sent_before, whole)
        beyond = tokens > window or surprise
        saved = 0 if beyond else tokens - kept
        earned = saved * price * 0.1 - (0.9 * price * kept if compacts else 0)
        yield AnswerEvent(
            "answer",
            at + rng.uniform(2, 20),
            call,
            mode,
            "fits" if tokens == kept else "retried" if surprise else "compressed",
            "none" if tokens == kept else "overflow" if surprise else "budget",
            2 if surprise else 1,
            LocalTokens(whole),
            beyond and mode == "enforce",
            Billed(ProviderTokens(whole), ProviderTokens(cached), ProviderTokens(0), ProviderTokens(rng.randint(50, 1_500))),
            saved,
            0.0 if beyond else earned,
            {"read_file": rng.randint(1, 3)} if dropped and rng.random() < 0.04 else {},
        )
        sent_before = whole


def decision(
    rng: random.Random,
    at: float,
    call: CallNames,
    mode: Mode,
    tokens: int,
    kept: int,
    window: int,
    decided: str = "",
    attempt: int = 0,
) -> DecisionEvent:
    """Return the record of a decision about so many tokens, of which so many are kept."""
    changed = kept < tokens
    counting = rng.lognormvariate(-1, 0.6) * math.sqrt(tokens / 10_000)
    compressing = rng.lognormvariate(2.6, 0.7) * math.sqrt(tokens / 50_000) if changed else 0.0
    known, factor = rng.lognormvariate(-2.2, 0.5), 1.11
    steps = STEPS[::-1] if changed else ()
    return DecisionEvent(
        "decision",
        at,
        call,
        mode,
        decided or ("compressed" if changed else "fits"),
        "",
        "overflow" if attempt else "budget" if changed else "none",
        attempt,
        "openai-chat",
        LocalTokens(round(tokens * 0.9)),
        LocalTokens(round(kept * 0.9)),
        ProviderTokens(tokens),
        ProviderTokens(kept),
        ProviderTokens(window - 16_384),
        ProviderTokens(window),
        "model_info",
        ProviderTokens(window),
        factor,
        None,
        None,
        tuple(
            StepReport(step.name, round((tokens - kept) * part / factor), round((tokens - kept) * part / 700) + 1, step.why)
            for step, part in zip(steps, (0.6, 0.2, 0.15, 0.05), strict=False)
        ),
        {
            "total": known + counting + compressing + rng.expovariate(8),
            "known": known,
            "counting": counting,
            **({"compressing": compressing} if changed else {}),
        },
        {},
    )


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--requests", type=int, default=20_000)
    arguments = parser.parse_args()
    rng = random.Random(7)
    arguments.folder.mkdir(exist_ok=True)
    answers, number = 0, 0
    with (arguments.folder / "events.1.jsonl").open("w", encoding="utf-8") as file:
        while answers < arguments.requests:
            day = rng.choices(range(7), weights=(6, 7, 8, 8, 7, 2, 1))[0]
            number += 1
            for event in session(rng, number, MONDAY + day * DAY + min(max(rng.gauss(13, 3.5), 0), 23.5) * 3_600):
                answers += event.name == "answer"
                file.write(to_json(event) + "\n")
        file.write(
            to_json(LimitEvent("limit_learned", "id:gpt-main", "limit", ProviderTokens(120_000), ProviderTokens(128_000)))
        )


if __name__ == "__main__":
    main()
