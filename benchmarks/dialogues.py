"""Plain dialogues with a last question about something said long ago: how often the turns with the answer survive.

    uv run --group bench python benchmarks/dialogues.py [DIALOGUES.jsonl...] [--dialogues 60] [--fraction 0.25]

Two friends exchange hundreds of short turns, mostly small talk whose words occur everywhere. A fact is told once, in one
turn or two; the question may name its subject in other words. Or dialogues are read from files: a line is a JSON object with
`source`, chat `messages` of which the last asks, and `evidence`, the texts of the turns that answer.

Prints for each source what survives verbatim: in how many questions any of these turns, what share of them, in how many all:
for this package in both modes, for the newest turns, and for a ranking by BM25 alone.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from contestants import keep_newest, size

import ctx_hooks
from ctx_hooks.compaction.selection import bm25

PEOPLE = ("my sister", "Marta", "our neighbour", "Deniz", "my old boss", "Uncle Theo", "Priya", "the twins", "my flatmate")
PLACES = (
    "Lisbon",
    "the lake house",
    "Osaka",
    "Grandma's village",
    "the new office",
    "Cape Town",
    "that bakery on Elm Street",
)
THINGS = (
    "a cello",
    "the blue bicycle",
    "two rescue cats",
    "a sourdough starter",
    "a telescope",
    "an old Vespa",
    "a greenhouse",
)
TIMES = ("last March", "on my birthday", "the week after Easter", "in 2019", "two summers ago", "on a rainy Tuesday")
REASONS = (
    "because the rent went up",
    "to be closer to the sea",
    "after the doctor insisted",
    "for a bet",
    "to learn Italian",
)

TELLINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("I finally bought {thing} {time}, {who} talked me into it.",), "Who persuaded me to get {thing}?"),
    (("We went to {place} {time} with {who}.",), "When was our trip to {place}?"),
    (("{who} moved to {place} {why}.",), "What made {who} leave for {place}?"),
    (
        ("Did I tell you {who} is selling {thing}?", "Yes, they asked four hundred for it, it was barely used."),
        "What did {who} want for {thing}?",
    ),
    (("{who} proposed at {place}, the answer came before the ring was out.",), "Where did the engagement of {who} happen?"),
    (
        ("I lost my keys at {place} and {who} had to climb through the window.",),
        "How did we get inside at {place} without a key?",
    ),
    (("{who} gave {thing} away {why}.",), "Why doesn't {who} have {thing} any more?"),
    (("The recipe from {who} needs three lemons, not two.",), "How many lemons go into what {who} cooks?"),
)
FACTS_OF_A_KIND = 6
CHATTER = (
    "How was your day?",
    "Busy, but fine. I had a long talk with {who} about work.",
    "That sounds nice, tell me more about it.",
    "I was thinking about {place} again, we should go some time.",
    "Honestly I just want to sleep, the week was too long.",
    "Did you see the game? I gave up before the end.",
    "I am cooking tonight, nothing special, pasta probably.",
    "{who} called, nothing important, just chatting.",
    "The weather is awful again, I stayed in and read.",
    "Ha, that is so like you! I would have done the same.",
    "I keep thinking about {thing}, is that silly?",
    "Work asked me to come in early, I said maybe.",
    "Thanks for listening, I feel much better now.",
    "Let us talk about it when we meet, it is a long story.",
    "{who} and {place}, that is a whole novel, I tell you.",
    "Why would anybody have {thing}? I never got it.",
    "What did {who} say in the end? Did you get an answer?",
    "How did that happen, and when? You never said.",
)


@dataclass(frozen=True)
class Dialogue:
    """Messages that end with a question, and the texts of the turns that answer it."""

    messages: list[dict[str, str]]
    evidence: tuple[str, ...]
    source: str = "generated"


def dialogue(seed: int, turns: int) -> Dialogue:
    """Return a dialogue of about `turns` turns; the same seed gives the same one."""
    draw = random.Random(seed)

    def filled(text: str, chosen: dict[str, str] | None = None) -> str:
        return text.format(**(chosen or choose()))

    def choose() -> dict[str, str]:
        return {
            "who": draw.choice(PEOPLE),
            "place": draw.choice(PLACES),
            "thing": draw.choice(THINGS),
            "time": draw.choice(TIMES),
            "why": draw.choice(REASONS),
        }

    texts = [filled(draw.choice(CHATTER)) for _ in range(turns)]
    asked = draw.randrange(len(TELLINGS) * FACTS_OF_A_KIND)
    evidence: tuple[str, ...] = ()
    question = ""
    for n, (tellings, about) in enumerate(TELLINGS * FACTS_OF_A_KIND):
        chosen = choose()
        place = draw.randrange(turns * 3 // 5)
        told = tuple(filled(t, chosen) for t in tellings)
        texts[place:place] = told
        if n == asked:
            evidence, question = told, filled(about, chosen)
    messages = [{"role": ("user", "assistant")[i % 2], "content": t} for i, t in enumerate(texts)]
    return Dialogue([*messages, {"role": "user", "content": question}], evidence)


def bm25_order(messages: list[dict[str, str]], budget: int) -> list[dict[str, str]]:
    """Keep the turns that BM25 ranks highest for the question."""
    question = messages[-1]
    scores = bm25.rank(question["content"], [m["content"] for m in messages[:-1]])
    room = budget - size([question])
    kept = set()
    for n in sorted(range(len(scores)), key=lambda n: -scores[n]):
        if (price := size([messages[n]])) <= room:
            kept.add(n)
            room -= price
    return [m for n, m in enumerate(messages[:-1]) if n in kept] + [question]


def read_dialogues(path: Path) -> list[Dialogue]:
    """Return the dialogues of a file, one a line."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Dialogue(row["messages"], tuple(row["evidence"]), row["source"]) for row in rows]


def surviving(found: Dialogue, sent: list[dict[str, str]]) -> float:
    """Return the share of the telling turns that stand verbatim in what is sent."""
    text = "\n".join(str(m["content"]) for m in sent)
    return statistics.mean(told in text for told in found.evidence)


def main() -> None:
    """Print a line a source and contestant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--dialogues", type=int, default=60)
    parser.add_argument("--turns", type=int, default=400)
    parser.add_argument("--fraction", type=float, default=0.25, help="budget as a share of the dialogue's tokens")
    arguments = parser.parse_args()
    found = [d for path in arguments.paths for d in read_dialogues(path)]
    found = found or [dialogue(seed, arguments.turns) for seed in range(arguments.dialogues)]
    compress = ctx_hooks.compress
    ways: dict[str, Callable[[list[dict[str, str]], int], list[dict[str, str]]]] = {
        "ctx_hooks": lambda m, b: compress(m, format="openai-chat", budget_tokens=b, model="gpt-4").messages,
        "replayed": lambda m, b: (
            compress(m, format="openai-chat", budget_tokens=b, target_tokens="auto", model="gpt-4").messages
        ),
        "newest turns": lambda m, b: keep_newest(m, None, "openai-chat", b),
        "BM25 order": bm25_order,
    }
    for source in dict.fromkeys(d.source for d in found):
        of_source = [d for d in found if d.source == source]
        print(f"{source}: {len(of_source)} dialogues of {statistics.mean(size(d.messages) for d in of_source):,.0f} tokens")
        for name, way in ways.items():
            kept = [surviving(d, way(d.messages, int(size(d.messages) * arguments.fraction))) for d in of_source]
            any_kept, all_kept = statistics.mean(k > 0 for k in kept), statistics.mean(k == 1 for k in kept)
            print(f"{name:14}any {any_kept:.2f}  share {statistics.mean(kept):.2f}  all {all_kept:.2f}")


if __name__ == "__main__":
    main()
