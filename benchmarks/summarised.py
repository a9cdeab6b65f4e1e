"""What the session sends with a summary that somebody else writes: a prompt in a folder, its answer beside it.

The summary is asked for as the add-on asks in `blocking` mode for the newest compaction, checked as it checks, and stands
where it stands. Whoever answers, a model or a person, reads NAME.prompt.txt and writes NAME.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ctx_hooks.addons.summaries.candidates import conversation_key, fitted, task_of
from ctx_hooks.addons.summaries.check import checked
from ctx_hooks.addons.summaries.prompt import parts_of, prompt_of
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import message_stats
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.summary.model_written import Summaries, WrittenSummary
from ctx_hooks.compaction.thresholds import Thresholds
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import DEFAULT, Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

WRITER_TOKENS = LocalTokens(100_000)
COUNTER = Counter(DEFAULT)


def summarised(messages: list[Any], fmt: Any, budget: int, folder: Path) -> list[Any] | None:
    """Return what the session sends with the summary of the folder; None without an accepted one that has its place.

    A prompt that is not there yet is written.
    """
    reader = MessageReader(fmt, messages)
    index = message_stats(reader, COUNTER)
    history = History(reader, index, LocalTokens(0), b"")
    thresholds = Thresholds(Budget(LocalTokens(budget), ProviderTokens(budget * 5 // 4), COUNTER, DEFAULT_POLICY))
    settings = fitted(SummarySettings(model="anyone"), budget)
    summaries = Summaries(conversation_key(reader, "", settings))
    choice = compacted(history, thresholds, summaries)[0].choice
    task = task_of(history, summaries, choice.length, choice.length - 1) if choice else None
    if choice is None or task is None:
        return None
    answer = folder / f"{task.prefix[:16]}.md"
    if not answer.exists():
        (part,) = parts_of(task, settings, WRITER_TOKENS, COUNTER)
        said = (f"{m['role']}:\n{m['content']}" for m in prompt_of(part, "", settings))
        answer.with_suffix(".prompt.txt").write_text("\n\n".join(said), encoding="utf-8")
        return None
    text = checked(answer.read_text(encoding="utf-8"), task, settings, COUNTER)
    if not text.text:
        print(f"{answer.name}: {text}")
        return None
    written = WrittenSummary(task.prefix, task.length, text.text)
    summaries = replace(summaries, written={task.prefix: written}, chosen={choice.compaction: task.prefix})
    outcome, _ = compacted(history, thresholds, summaries)
    is_placed = outcome.choice is not None and outcome.choice.prefix == task.prefix
    return list(WIRE_FORMATS[fmt].write(outcome.conversation)) if is_placed else None
