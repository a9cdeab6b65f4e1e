"""What each part of a compaction adds: every part is switched off, one at a time, and the rest is measured.

    uv run --group bench python benchmarks/ablation.py SESSIONS.jsonl... [--sessions 2] [--steps 6] [--only PART...]

Prints a Markdown table. The first row has everything; the others say by how much a figure changes without the part. A part
is switched off here, by putting something else in its place: the package has no option for it. Each row is measured in a
process of its own, whose caches begin empty.

A session is replayed at 32,000 tokens, every request of it; a fit is made to 16,000. Names, distant names and the cache
share are as in `benchmarks/fidelity.py`. Words: the share of the sentences of older user turns that are sent to the letter.
Files: the share of the changed files that are named. Lone, span: of the kept lines of shortened results, those whose
neighbours were both removed, and the mean lines of a kept span. Dialogue: the share of the turns that answer
(`benchmarks/dialogues.py`). Logs: of lines in files that were read beside long logs, the share that a fit to 8,000 tokens
keeps. Acts: the share of the measured contexts that differ without the part. Milliseconds: processor time of a request.
"""

from __future__ import annotations

import argparse
import inspect
import json
import multiprocessing
import random
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from contestants import single_fit, size, text_of
from dialogues import dialogue, surviving
from recall import Step, share, steps
from replaying import cache_share, requests
from results import Session, grouped, sessions

import ctx_hooks
from ctx_hooks.compaction import cut_points, pipeline, quoting, tool_texts
from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import History, message_stats
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.selection import bm25, scoring, segments, select
from ctx_hooks.compaction.steps import oldest_turns
from ctx_hooks.compaction.summary import extractive
from ctx_hooks.conversation import placeholders
from ctx_hooks.formats import WIRE_FORMATS, MessageReader
from ctx_hooks.runtime.content_cache import digest
from ctx_hooks.testing.conversations import source_text
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

SESSION_TOKENS, FIT_TOKENS = 32_000, 16_000
DIALOGUES, TURNS, DIALOGUE_FRACTION = 6, 400, 0.1
COLUMNS = (
    "names",
    "distant",
    "cache",
    "used",
    "fit",
    "fit distant",
    "words",
    "files",
    "lone",
    "span",
    "dialogue fit",
    "dialogue",
    "logs",
    "asked",
    "pasted",
    "ms",
)
SAID = "_said"
"""The function of the summary that makes the section of what was said."""
LOG_TURNS, LOG_TOKENS, PASTES = 24, 8_000, 8
_TAG = re.compile(r"<([\w-]+)[^>]*>.*?</\1>|```.*?```", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_CHANGES = re.compile(r"edit|write|patch|create|replace", re.IGNORECASE)
_PATCHED = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (\S+)")

Part = tuple[Callable[[], None], tuple[Any, ...]]
"""Switches a part off; and the code that then has no use."""


def _set(where: Any, name: str, value: Any, *code: Any) -> Part:
    return partial(setattr, where, name, value), code


def _without(where: Any, name: str, value: Any) -> Part:
    """Put a value in the place of a function that then has no use."""
    return _set(where, name, value, getattr(where, name))


def _without_step(name: str) -> Part:
    step = next(s for s in pipeline.STEPS if s.name == name)
    rest = tuple(s for s in pipeline.STEPS if s is not step)
    return _set(pipeline, "STEPS", rest, inspect.getmodule(step.apply))


def _without_section(name: str) -> Part:
    if name == "said":
        return _set(extractive, SAID, lambda _removed, room, _answers, _language: ([], room))
    entries = extractive.done_in
    return _set(extractive, "done_in", lambda removed, language: {**entries(removed, language), name: []})


def parts() -> dict[str, Part]:
    """Return the parts by name."""
    said = getattr(extractive, SAID)
    return {
        **{f"step {s.name}": _without_step(s.name) for s in pipeline.STEPS if s is not oldest_turns.STEP},
        "users' words": _set(select, "user_words", lambda *_: {}, inspect.getmodule(select.user_words)),
        "pasted blocks": _set(scoring, "block_segments", lambda text, *_: segments.segments(text)),
        "newest exchanges whole": _set(select, "keep_recent_tokens_of", lambda *_: 0),
        "value of used names": _set(scoring, "USED_VALUE", 1.0),
        "relevant dialogue": _without(select.Selector, "_relevant_dialogue", lambda *_, **__: ()),
        "filling the rest": _without(select.Selector, "_fill", lambda *_: None),
        "neighbours in BM25": _set(bm25, "MOST_NEIGHBOURS", 0),
        "spans": _set(segments, "MOST_SPAN_LINES", 1, segments.segment_spans),
        **{f"summary: {name}": _without_section(name) for name in list(extractive.SHARES)[1:]},
        "summary: answers": _set(
            extractive, SAID, lambda removed, room, _answers, language: said(removed, room, 0, language)
        ),
        "settled prefixes": _set(cut_points, "MOST_GENERATIONS", 0),
        "quoting": _set(quoting.Quoting, "texts", lambda *_: {}, quoting),
    }


def lines_of(code: tuple[Any, ...]) -> int:
    """Return how many lines of source some modules and functions have."""
    return sum(len(inspect.getsource(c).splitlines()) for c in code)


def sentences(message: Any) -> set[str]:
    """Return the sentences of three to sixty words that a user has typed: what stands in elements or fences is pasted."""
    content = message.get("content") if message["role"] == "user" else ""
    if isinstance(content, list):
        content = "\n".join(part.get("text", "") for part in content if part.get("type") == "text")
    found = {s.strip() for s in _SENTENCE.split(_TAG.sub("", content or ""))}
    return {s for s in found if 3 <= len(s.split()) <= 60}


def changed_files(message: Any) -> set[str]:
    """Return the files that the calls of a message change, as far as their arguments or patches name them."""
    calls = [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or ()]
    content = message.get("content")
    blocks = content if isinstance(content, list) else ()
    calls += [(b["name"], json.dumps(b["input"])) for b in blocks if b.get("type") == "tool_use"]
    found = set()
    for name, arguments in calls:
        found.update(_PATCHED.findall(arguments.replace("\\n", "\n")))
        if _CHANGES.search(name):
            found.update(tool_texts.paths(arguments))
    return found


def spans(messages: list[Any]) -> Iterator[int]:
    """Yield the number of lines of each kept span of shortened results."""
    for message in messages:
        content = message.get("content")
        parts_of = content if isinstance(content, list) else [{"content": content}]
        for text in (text_of(p.get("content")) for p in parts_of if isinstance(p, dict)):
            if text.startswith(placeholders.MARK) and f"\n{placeholders.GAP}" in text:
                count = 0
                for line in [*text.split("\n")[1:], placeholders.GAP]:
                    if line.strip() == placeholders.GAP and count:
                        yield count
                    count = 0 if line.strip() == placeholders.GAP else count + bool(line.strip())


def beside_logs(seed: int) -> tuple[list[Any], frozenset[str], str]:
    """Return a session that reads a file and a long log in turn, a line of each file, and the one that is asked for last."""
    draw = random.Random(seed)
    messages: list[Any] = [{"role": "user", "content": "Find out why the deployment is slow."}]
    facts = []
    for n in range(LOG_TURNS):
        text = "".join(
            f"10:{k % 60:02} INFO worker-{draw.randrange(64)} took {draw.randrange(900)} ms\n" for k in range(400)
        )
        if n % 2:
            facts.append(f"retry_limit_{draw.randrange(10**5)} = backoff_{draw.randrange(10**4)}")
            code = source_text(draw, 6_000)
            text = f"{code[:3_000]}\n{facts[-1]}\n{code[3_000:]}"
        call = {"name": "read_file", "arguments": json.dumps({"path": f"part_{n}"})}
        messages.append({"role": "assistant", "tool_calls": [{"id": f"c{n}", "type": "function", "function": call}]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    asked = draw.choice(facts)
    messages.append({"role": "user", "content": f"Where does {asked.partition(' ')[0]} come from?"})
    return messages, frozenset(facts), asked


def pasted(seed: int) -> tuple[list[Any], frozenset[str], str]:
    """Return a chat in which a user pastes files, their names, and a line that is asked for last."""
    draw = random.Random(seed)
    messages: list[Any] = []
    lines = []
    for n in range(PASTES):
        files = []
        for k in range(3):
            code = source_text(draw, 3_000)
            lines.append(f"limit_{draw.randrange(10**5)} = backoff_{draw.randrange(10**4)}")
            files.append(f'<file path="src/part_{n}_{k}.py">\n{code[:1_500]}\n{lines[-1]}\n{code[1_500:]}\n</file>\n')
        messages.append({"role": "user", "content": f"Here are my files.\n\n{''.join(files)}\nWhat is wrong with them?"})
        messages.append({"role": "assistant", "content": "Nothing that I can see; the limits are a matter of taste."})
    asked = draw.choice(lines)
    messages.append({"role": "user", "content": f"And {asked.partition(' ')[0]}, is it too high?"})
    return messages, frozenset(f"src/part_{n}_{k}.py" for n in range(PASTES) for k in range(3)), asked


def measured(
    session: Session, wanted: dict[int, Step], fitted: list[Step], *, with_cache: bool
) -> Iterator[tuple[str, float | bytes | None]]:
    """Yield figures of one session by name, and under "sent" the digest of each measured context."""
    fmt, messages = session.format, session.messages
    budget = Budget(SESSION_TOKENS, SESSION_TOKENS * 5 // 4, Counter("cl100k_base"))
    index = message_stats(MessageReader(fmt, messages), budget.counter)
    started = time.process_time()
    for length, step in wanted.items():
        history = History(MessageReader(fmt, messages[:length]), index[:length], 0, b"")
        written = WIRE_FORMATS[fmt].write(compacted(history, Thresholds(budget))[0].conversation)
        after = text_of(written)
        yield "sent", digest(after)
        yield "names", share(step.needed, after)
        yield "distant", share(step.distant, after)
        yield "used", size(written) / SESSION_TOKENS
        said = frozenset[str]().union(*map(sentences, [m for m in messages[:length] if sentences(m)][:-1]))
        yield "words", share(said, " ".join(after.split()).replace("> ", ""))
        yield "files", share(frozenset[str]().union(*map(changed_files, messages[:length])), after)
        for count in spans(written):
            yield "span", count
    yield "ms", (time.process_time() - started) * 1e3 / len(wanted)
    if with_cache:
        yield "cache", cache_share([sent for sent in requests(fmt, messages, budget) if sent.compactions])
    for step in fitted:
        after = text_of(single_fit(step.context, None, fmt, FIT_TOKENS))
        yield "sent", digest(after)
        yield "fit", share(step.needed, after)
        yield "fit distant", share(step.distant, after)


def measure(
    name: str, chosen: list[tuple[Session, dict[int, Step], list[Step]]], *, with_cache: bool
) -> tuple[dict[str, float], list[bytes], int]:
    """Return the figures without a part, the digest of each context, and the lines of the part."""
    lines = 0
    if name:
        switch, code = parts()[name]
        lines = lines_of(code)
        switch()
    found: dict[str, list[Any]] = defaultdict(list)
    for one in chosen:
        for figure, value in measured(*one, with_cache=with_cache):
            if value is not None:
                found[figure].append(value)
    for asked in (dialogue(seed, TURNS) for seed in range(DIALOGUES)):
        budget = int(size(asked.messages) * DIALOGUE_FRACTION)
        for figure, target in (("dialogue fit", None), ("dialogue", "auto")):
            sent = ctx_hooks.compress(
                asked.messages, format="openai-chat", budget_tokens=budget, target_tokens=target, model="gpt-4"
            ).messages
            found["sent"].append(digest(text_of(sent)))
            found[figure].append(surviving(asked, sent))
    for figure, made in (("logs", beside_logs), ("pasted", pasted)):
        for messages, lines_said, line in map(made, range(DIALOGUES)):
            sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=LOG_TOKENS, model="gpt-4").messages
            found["sent"].append(digest(text_of(sent)))
            found[figure].append(share(lines_said, text_of(sent)))
            found["asked"].append(float(line in text_of(sent)))
    digests = found.pop("sent")
    kept = found.get("span") or [0]
    figures = {figure: statistics.fmean(values) for figure, values in found.items()}
    return figures | {"lone": sum(n == 1 for n in kept) / max(1, sum(kept))}, digests, lines


def cell(figures: dict[str, float], whole: dict[str, float], column: str) -> str:
    """Return a figure as the table shows it: beside that of the whole its difference, nothing where there is none."""
    if column not in figures:
        return ""
    if column not in whole:
        return f"{figures[column]:.3f}"
    difference = f"{figures[column] - whole[column]:+.3f}"
    return "" if float(difference) == 0 else difference


def main() -> None:
    """Print the table, a row as soon as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--sessions", type=int, default=2, help="of each file")
    parser.add_argument("--steps", type=int, default=6, help="measured steps of each session")
    parser.add_argument("--most", type=int, default=300, help="messages of a session: longer ones take too long")
    parser.add_argument("--cache", action="store_true", help="replay every request for the share of the prompt cache")
    parser.add_argument("--only", nargs="*", help="parts by name")
    arguments = parser.parse_args()
    chosen = []
    for found in grouped(sessions(arguments.paths), lambda s: s.source).values():
        small = (s for s in found if len(s.messages) <= arguments.most)
        asked = ((s, {len(t.context): t for t in steps(s.messages, SESSION_TOKENS, arguments.steps)}) for s in small)
        for session, wanted in [(s, w) for s, w in asked if w][: arguments.sessions]:
            chosen.append((session, wanted, list(steps(session.messages, FIT_TOKENS, arguments.steps))))
    print(f"{len(chosen)} sessions, {sum(len(w) + len(f) for _, w, f in chosen)} contexts, {DIALOGUES} dialogues\n")
    print("| without | acts | " + " | ".join(COLUMNS) + " | lines |\n|" + "---|" * (len(COLUMNS) + 3))
    first: tuple[dict[str, float], list[bytes], int] | None = None
    context = multiprocessing.get_context("fork")
    for name in ("", *(p for p in parts() if not arguments.only or p in arguments.only)):
        with context.Pool(1) as pool:
            figures, digests, lines = pool.apply(measure, (name, chosen), {"with_cache": arguments.cache})
        first = first or (figures, digests, lines)
        acts = statistics.fmean(a != b for a, b in zip(digests, first[1], strict=True))
        shown = [cell(figures, first[0] if name else {}, c) for c in COLUMNS]
        print(f"| {name or 'nothing'} | {acts:.2f} | {' | '.join(shown)} | {lines or '–'} |", flush=True)


if __name__ == "__main__":
    main()
