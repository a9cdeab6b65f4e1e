"""An agent that reads 25 files in a window of 60,000 tokens, with and without the plugin: the picture of the README.

    uv run python benchmarks/session_picture.py [--out docs/session.svg]

Two real proxies, one without the plugin, in front of one strict provider; neither knows the window. A scripted model asks
for the next file, the agent sends it with its whole history to `/v1/messages`, and stops at an error as agents do. The
picture has what the provider counted of each request, what a prefix cache would have served of it, and the provider's last
words. It needs no network and takes a minute.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import httpx

from ctx_hooks.testing import LOOPBACK, Call, FakeProvider, ProviderSettings, ProxyProcess, Reply
from ctx_hooks.testing.conversations import TOOL, read_tool, source_text

FILES = 25
FILE_CHARS = 16_000
"""About 4,800 of the provider's tokens."""
WINDOW_TOKENS = 60_000
SHOWN_TOKENS = 70_000
"""The height of a panel: the window, and room for the request that exceeds it."""
DONE = f"All {FILES} files are read."
PANELS = ("LiteLLM without ctx_hooks", "LiteLLM with ctx_hooks")

WIDTH, LEFT, BAR_WIDTH, STEP_WIDTH = 640, 24, 14, 20
"""Narrow, so that a phone shows its words in a size that can be read."""
PANEL_HEIGHT, FIRST_BASE, PANEL_DISTANCE = 130, 256, 206
STEPS = FILES + 1


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the provider got of one request: its tokens, those that a prefix cache serves, and whether it was answered."""

    tokens: int
    cached_tokens: int
    answered: bool


@dataclass(frozen=True, slots=True)
class Session:
    """The attempts of each request of a session, and the provider's last text."""

    requests: tuple[tuple[Attempt, ...], ...]
    last_text: str

    @property
    def finished(self) -> bool:
        """Whether the agent came to its end."""
        return self.last_text == DONE


def model(_fmt: str, _payload: Mapping[str, Any], answered: int) -> Reply:
    """Ask for one file after another, then say that all are read."""
    if answered >= FILES:
        return Reply(DONE)
    return Reply(calls=[Call(TOOL, {"path": f"file_{answered + 1:02}.txt"})])


def run(provider: FakeProvider, callbacks: list[str]) -> Session:
    """Run the agent against a proxy with these callbacks."""
    provider.reset()
    params = {"model": "anthropic/served", "api_base": provider.url, "api_key": "not-a-key"}
    config = {
        "model_list": [{"model_name": "claude", "litellm_params": params}],
        "litellm_settings": {"callbacks": callbacks},
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
    }
    with ProxyProcess(config) as proxy:
        return agent(proxy, provider)


def agent(proxy: ProxyProcess, provider: FakeProvider) -> Session:
    """Send the growing history until the model calls no tool or the request fails."""
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Read every file, from 01 to {FILES}, and say when done."}
    ]
    requests: list[tuple[Attempt, ...]] = []
    seen = 0
    while True:
        payload = {"model": "claude", "max_tokens": 1_024, "tools": [read_tool("anthropic")], "messages": messages}
        answer = LOOPBACK.post(f"{proxy.url}/v1/messages", json=payload, headers=proxy.headers, timeout=120)
        records = provider.requests()
        requests.append(tuple(_attempt(record) for record in records[seen:]))
        seen = len(records)
        if answer.status_code != httpx.codes.OK:
            return Session(tuple(requests), f"{answer.status_code}: {records[-1]['error']}")
        blocks = answer.json()["content"]
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if not calls:
            return Session(tuple(requests), blocks[0]["text"])
        results = [{"type": "tool_result", "tool_use_id": c["id"], "content": _file(c["input"]["path"])} for c in calls]
        messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]


def _attempt(record: Mapping[str, Any]) -> Attempt:
    answered = record["status"] == httpx.codes.OK
    return Attempt(record["input_tokens"], record.get("cached_tokens", 0), answered)


def _file(path: str) -> str:
    return source_text(random.Random(path), FILE_CHARS)


PICTURE = Template("""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 $width $height" width="$width" height="$height" role="img" \
aria-labelledby="title what">
<title id="title">An agent session without and with ctx_hooks</title>
<desc id="what">$description</desc>
<style>
svg { --paper: #ffffff; --edge: #d0d7de; --ink: #1f2328; --faint: #59636e; --served: #9fd8b0;
  --new: #1a7f37; --bad: #cf222e }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --edge: #3d444d; --ink: #f0f6fc; --faint: #9198a1; --served: #1f5c33;
    --new: #56d364; --bad: #ff7b72 }
}
text { font: 14px ui-sans-serif, system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: var(--ink) }
.small { font-size: 12px; fill: var(--faint) }
.head { font-size: 15px; font-weight: 600 }
.said { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
.bad { fill: var(--bad) }
.good { fill: var(--new) }
.card { fill: var(--paper); stroke: var(--edge) }
.served { fill: var(--served) }
.new { fill: var(--new) }
.refused { fill: none; stroke: var(--bad); stroke-width: 2 }
.window { stroke: var(--bad); stroke-dasharray: 5 4 }
.base { stroke: var(--edge) }
</style>
<rect class="card" x="0.5" y="0.5" width="$inner_width" height="$inner_height" rx="8"/>
<text class="head" x="24" y="34">$headline</text>
<text class="small" x="24" y="54">Each bar is one request, as the provider counted it.</text>
<rect class="served" x="24" y="68" width="12" height="12"/>
<text class="small" x="42" y="78">served from the prompt cache</text>
<rect class="new" x="290" y="68" width="12" height="12"/>
<text class="small" x="308" y="78">not cached</text>
$panels
</svg>
""")


def picture(sessions: tuple[Session, ...]) -> str:
    """Return the picture of the sessions, one panel each."""
    height = FIRST_BASE + PANEL_DISTANCE * (len(sessions) - 1) + 44
    return PICTURE.substitute(
        width=WIDTH,
        height=height,
        inner_width=WIDTH - 1,
        inner_height=height - 1,
        headline=f"An agent reads {FILES} files in a window of {WINDOW_TOKENS:,} tokens.",
        description=" ".join(
            f"{name}: {len(s.requests)} requests, then: {escape(s.last_text)}"
            for name, s in zip(PANELS, sessions, strict=True)
        ),
        panels="\n".join(_panel(n, session) for n, session in enumerate(sessions)),
    )


def _panel(number: int, session: Session) -> str:
    """Return a panel: its bars, the lines of the window and the base, and what was said."""
    base = FIRST_BASE + PANEL_DISTANCE * number
    window_y = _y(base, WINDOW_TOKENS)
    bars = [_bars(base, n, attempt) for n, attempts in enumerate(session.requests) for attempt in attempts]
    kind, mark = ("good", "✓") if session.finished else ("bad", "✗")
    end = LEFT + STEPS * STEP_WIDTH
    lines = [
        f'<text class="head" x="24" y="{base - PANEL_HEIGHT - 8}">{PANELS[number]}</text>',
        f'<line class="window" x1="{LEFT}" x2="{end}" y1="{window_y}" y2="{window_y}"/>',
        f'<text class="small" x="{LEFT}" y="{window_y - 5}">the window: {WINDOW_TOKENS:,}</text>',
        f'<line class="base" x1="{LEFT}" x2="{end}" y1="{base}" y2="{base}"/>',
        f'<text class="said {kind}" x="{LEFT}" y="{base + 22}">{mark} {escape(session.last_text)}</text>',
    ]
    for refused in _retried(session):
        x, y = LEFT + refused * STEP_WIDTH, _y(base, SHOWN_TOKENS) - 4
        told = "refused, compressed, sent again"
        lines.append(f'<text class="small" x="{x}" y="{y}">{told}</text>')
    return "\n".join([*bars, *lines])


def _bars(base: int, number: int, attempt: Attempt) -> str:
    x = LEFT + number * STEP_WIDTH
    top = _y(base, attempt.tokens)
    if not attempt.answered:
        return f'<rect class="refused" x="{x}" y="{top}" width="{BAR_WIDTH}" height="{base - top}"/>'
    served_top = _y(base, attempt.cached_tokens)
    return (
        f'<rect class="served" x="{x}" y="{served_top}" width="{BAR_WIDTH}" height="{base - served_top}"/>'
        f'<rect class="new" x="{x}" y="{top}" width="{BAR_WIDTH}" height="{served_top - top}"/>'
    )


def _y(base: int, tokens: int) -> int:
    return base - round(PANEL_HEIGHT * tokens / SHOWN_TOKENS)


def _retried(session: Session) -> list[int]:
    """Return the requests, from 0, that were refused and then answered."""
    return [n for n, attempts in enumerate(session.requests) if not attempts[0].answered and attempts[-1].answered]


def main() -> None:
    """Run both sessions and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "docs" / "session.svg")
    arguments = parser.parse_args()
    with FakeProvider(ProviderSettings(window_tokens=WINDOW_TOKENS, wording="anthropic"), model) as provider:
        sessions = (run(provider, []), run(provider, ["ctx_hooks.proxy_handler_instance"]))
    for name, session in zip(PANELS, sessions, strict=True):
        print(f"{name}: {len(session.requests)} requests, then: {session.last_text}")
        for number, attempts in enumerate(session.requests, 1):
            print(f"  {number:2} " + ", ".join(f"{a.tokens:,} ({a.cached_tokens:,} served)" for a in attempts))
    arguments.out.write_text(picture(sessions), encoding="utf-8")


if __name__ == "__main__":
    main()
