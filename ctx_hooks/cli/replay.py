"""`ctx-hooks replay FILE.jsonl`: the requests of recorded sessions as the plugin would have sent them, with their cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ctx_hooks.compaction.cost import CACHE_PRICES, cost_of
from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import digest_of, message_stats, request_points
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.conversation.model import Conversation, Format
from ctx_hooks.formats import CODECS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens
from ctx_hooks.tokens.vocabulary import DEFAULT


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: its tokens, how many of them a prefix cache would serve, and the compactions up to it."""

    tokens: int
    cached_tokens: int
    compactions: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A session's requests as received, as the policy sends them, and with the oldest exchanges cut at each request."""

    name: str
    uncompressed: tuple[Sent, ...]
    replayed: tuple[Sent, ...]
    sliding: tuple[Sent, ...]


@click.command()
@click.argument("sessions", type=click.Path(path_type=Path))
@click.option("--budget", type=int, default=32_000, show_default=True, help="Trigger tokens: a larger request is compacted.")
@click.option("--plot", type=click.Path(path_type=Path), help="Write a plot of the last session (needs matplotlib).")
def command(sessions: Path, budget: int, plot: Path | None) -> int:
    """Replay recorded sessions: JSON lines with `format` and `messages`."""
    return run(sessions, budget, plot)


def run(path: Path, budget_tokens: int, plot: Path | None) -> int:
    """Print a table a session; write a plot where one is asked for. Return 0."""
    for line in path.read_text(encoding="utf-8").splitlines():
        recorded = json.loads(line)
        session = measure(str(recorded.get("id") or path.stem), recorded["format"], recorded["messages"], budget_tokens)
        _print(session)
        if plot is not None:
            _plot(session, plot)
    return 0


def measure(name: str, fmt: Format, messages: Sequence[Any], budget_tokens: int) -> Session:
    """Return the requests of a session as received, as the policy sends them, and with a cut at each request."""
    counter = Counter(DEFAULT)
    codec = CODECS[fmt]
    goal = LocalTokens(budget_tokens)
    budget = Budget(goal, ProviderTokens(goal * 5 // 4), counter)
    reader = MessageReader(fmt, messages)
    index = message_stats(reader, counter)
    ways: tuple[list[Sent], ...] = ([], [], [])
    before: list[list[bytes]] = [[], [], []]
    for length in request_points(index):
        conversation = reader.conversation(0, length)
        history = History(reader, index[:length], LocalTokens(0), b"")
        outcome, cut = compacted(history, Thresholds(budget))
        slid = _newest(conversation, budget)
        for n, sent in enumerate((conversation, outcome.conversation, slid)):
            digests = [digest_of(m) for m in codec.write(sent)]
            sizes = [counter.message(m, fmt) for m in sent.messages]
            shared = next((i for i, (a, b) in enumerate(zip(digests, before[n], strict=False)) if a != b), len(before[n]))
            ways[n].append(Sent(sum(sizes), sum(sizes[: min(shared, len(sizes))]), cut.number if n == 1 else 0))
            before[n] = digests
    return Session(name, *(tuple(way) for way in ways))


def _newest(conversation: Conversation, budget: Budget) -> Conversation:
    """Return the system text and the newest exchanges that fit: a cut that moves with every request."""
    kept = [i for i, m in enumerate(conversation.messages) if m.role == "system"]
    room = budget.goal_tokens - sum(budget.counter.message(conversation.messages[i], conversation.format) for i in kept)
    newest: list[int] = []
    for exchange in reversed(conversation.exchanges):
        room -= sum(budget.counter.message(conversation.messages[i], conversation.format) for i in exchange)
        if room < 0:
            break
        newest = [*exchange, *newest]
    return conversation.with_messages(tuple(conversation.messages[i] for i in sorted({*kept, *newest})))


def price(sent: Sequence[Sent]) -> float:
    """Return the price of requests in plain input tokens."""
    return sum(cost_of(s.cached_tokens, s.tokens - s.cached_tokens, CACHE_PRICES) for s in sent)


def cache_share(sent: Sequence[Sent]) -> float:
    """Return the share of all prompt tokens that a prefix cache would serve."""
    return sum(s.cached_tokens for s in sent) / max(1, sum(s.tokens for s in sent))


def _print(session: Session) -> None:
    print(f"{session.name}: {len(session.replayed)} requests, {session.replayed[-1].compactions} compactions")
    print(f"{'request':>8}{'before':>10}{'after':>10}{'shared':>10}{'compactions':>13}")
    for n, (raw, sent) in enumerate(zip(session.uncompressed, session.replayed, strict=True), 1):
        print(f"{n:8}{raw.tokens:10,}{sent.tokens:10,}{sent.cached_tokens:10,}{sent.compactions:13}")
    for name in ("replayed", "uncompressed", "sliding"):
        sent_all = getattr(session, name)
        print(f"  {name:14}cost {price(sent_all):14,.0f}   cache share {cache_share(sent_all):.3f}")


def _plot(session: Session, path: Path) -> None:
    import matplotlib as mpl  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415 - an extra, for this alone

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # type: ignore[import-not-found, unused-ignore]  # noqa: PLC0415

    figure, panel = plt.subplots(figsize=(9, 4))
    for name in ("uncompressed", "replayed", "sliding"):
        panel.plot([s.tokens for s in getattr(session, name)], label=name)
    panel.set(xlabel="request", ylabel="prompt tokens", title=session.name)
    panel.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
