"""The time of compressing 150,000 tokens to 32,000: cold, and with all but the last turn seen before.

    uv run --group bench python benchmarks/speed.py [FILE.jsonl...]

Without a file a generated agent session is used. Each figure is the least processor time of several repeats; the ratio to
litellm.compress on the same messages is comparable between machines.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from contestants import litellm_compress, size

import ctx_hooks
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session

SESSION_TOKENS = 150_000
BUDGET_TOKENS = 32_000
REPEATS = 5


def sessions(paths: list[Path]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield name, format and messages of sessions cut to about 150,000 tokens."""
    if not paths:
        for fmt in ("openai-chat", "anthropic"):
            messages = agent_session(fmt, turns=180, result_chars=3_000)["messages"]
            yield f"generated {fmt}", fmt, messages
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            session = json.loads(line)
            messages = session["messages"]
            total, n = 0, 0
            while n < len(messages) and total < SESSION_TOKENS:
                total += size(messages[n : n + 1])
                n += 1
            while n and messages[n - 1].get("role") == "assistant":
                n -= 1
            if total >= SESSION_TOKENS:
                yield session["id"], session["format"], messages[:n]


def least(work: Callable[[], object], before: Callable[[], object]) -> float:
    """Return the least milliseconds of `work`, with `before` run ahead of each repeat and not timed."""
    found = []
    for _ in range(REPEATS):
        before()
        started = time.process_time()
        work()
        found.append((time.process_time() - started) * 1e3)
    return min(found)


def main() -> None:
    """Print a line a session and mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args()
    ctx_hooks.compress([{"role": "user", "content": "load the vocabulary"}], format="openai-chat", budget_tokens=1)
    print(
        f"{'session':40}{'mode':8}{'cold ms':>9}{'warm ms':>9}{'litellm.compress':>18}{'ratio cold':>12}{'ratio warm':>12}"
    )
    for name, fmt, messages in sessions(arguments.paths):
        try:
            theirs = least(lambda m=messages, f=fmt: litellm_compress(m, None, f, BUDGET_TOKENS), lambda: None)
        except AttributeError:
            theirs = float("nan")  # it fails on messages whose content is null
        for mode, options in (("fit", {}), ("replay", {"target_tokens": "auto"})):

            def compress(found: list[Any], fmt: str = fmt, options: dict[str, Any] = options) -> object:
                return ctx_hooks.compress(found, format=fmt, budget_tokens=BUDGET_TOKENS, **options)

            def seen_before(found: list[Any] = messages, call: Callable[..., object] = compress) -> None:
                content_cache.clear_all()
                call(found[:-2])

            cold = least(lambda m=messages, c=compress: c(m), content_cache.clear_all)
            warm = least(lambda m=messages, c=compress: c(m), seen_before)
            print(f"{name:40}{mode:8}{cold:9.1f}{warm:9.1f}{theirs:18.1f}{theirs / cold:12.1f}{theirs / warm:12.1f}")


if __name__ == "__main__":
    main()
