"""CPU time and memory that a new process needs to compress very large conversations.

    python benchmarks/size.py                      # every shape, format and way
    python benchmarks/size.py dialogue-100k chat   # those whose name holds each of these words

Each line is a process of its own, so that no line uses the caches of another.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from ctx_hooks.api import compress
from ctx_hooks.testing import agent_session
from ctx_hooks.testing.conversations import source_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_hooks.conversation.model import Format

FORMATS: dict[str, Format] = {"chat": "openai-chat", "anthropic": "anthropic", "responses": "openai-responses"}
BUDGET_TOKENS = 100_000
GOALS = ("budget", "auto")


def dialogue(messages: int, chars: int) -> list[dict[str, Any]]:
    """Return turns of user and assistant of about so many characters, no two alike."""
    rng = random.Random(messages)
    text = source_text(rng, max(200_000, 2 * chars))
    turns = []
    for n in range(messages):
        start = rng.randrange(len(text) - chars)
        turns.append({"role": "assistant" if n % 2 else "user", "content": f"{n} {text[start : start + chars].strip()}"})
    return turns if messages % 2 else turns[:-1]


def results(fmt: Format, turns: int, chars: int) -> list[dict[str, Any]]:
    """Return an agent's session with so many results of about `chars` characters."""
    session = agent_session(fmt, turns=turns, result_chars=chars)
    found: list[dict[str, Any]] = session["input" if fmt == "openai-responses" else "messages"]
    return found


SHAPES: dict[str, Callable[[Format], list[dict[str, Any]]]] = {
    "dialogue-10k": lambda _: dialogue(10_001, 30),
    "dialogue-100k": lambda _: dialogue(100_001, 30),
    "long-turns-20k": lambda _: dialogue(20_001, 400),
    "results-600": lambda fmt: results(fmt, 600, 50_000),
    "calls-20k": lambda fmt: results(fmt, 20_000, 100),
}
COLUMNS = ("shape", "format", "goal", "M tokens", "CPU seconds", "s/M tokens", "peak MB", "fits")


def main(words: list[str]) -> None:
    """Run every line that the words name, each in a new process."""
    print("".join(f"{column:16}" for column in COLUMNS))
    for shape in SHAPES:
        for name in FORMATS:
            for goal in GOALS:
                if all(w in f"{shape} {name} {goal}" for w in words):
                    subprocess.run([sys.executable, __file__, "--line", shape, name, goal], check=False)  # noqa: S603


def line(shape: str, name: str, goal: str) -> None:
    """Compress once and print the figures."""
    fmt = FORMATS[name]
    messages = SHAPES[shape](fmt)
    compress([{"role": "user", "content": "The vocabulary is loaded."}], format=fmt)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    started = time.process_time()
    result = compress(messages, format=fmt, budget_tokens=BUDGET_TOKENS, target_tokens="auto" if goal == "auto" else None)
    seconds = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    million = result.tokens_before / 1e6
    figures = (f"{million:.2f}", f"{seconds:.2f}", f"{seconds / million:.2f}", f"{peak:.0f}", str(result.fits))
    print("".join(f"{column:16}" for column in (shape, name, goal, *figures)), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--line"]:
        line(*sys.argv[2:])
    else:
        main(sys.argv[1:])
