"""Sends each step to both planes in turn, and judges every answer."""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
from services import PLANES
from workload import answer_to

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workload import RecordedSession, Session, Step

TRIES = 6
"""As agents do: a connection that breaks, a 429 or a 5xx is sent again after a pause, 400 is not."""
PAUSE_SECONDS = 0.5
ANSWER_SECONDS = 120
LEAVES_SECONDS = (0.01, 0.08)
OVERFLOW = ("context length", "context window", "too long", "ContextWindowExceeded")


@dataclass(slots=True)
class Outcome:
    """What became of a step on one plane.

    Attributes:
        plane, at, seconds: where, when it began (`time.time()`), and how long until the end of the answer, with all tries.
        fmt, kind, size, nonce, streams: the step's.
        by_session: whether the balancer chose the worker by session.
        end: `right`, `wrong`, `mixed` (another session's text in the request), `refused` (an overflow), `error`, `left`.
        tries: how often it was sent.
        fails: whether its provider failed once.
        decision: the plugin's header, "" for none.
        prompt_tokens, cached_tokens: of the answer's usage.
        told: the beginning of an answer that is not right.
    """

    plane: str
    at: float
    seconds: float
    fmt: str
    kind: str
    size: str
    nonce: str
    streams: bool
    by_session: bool
    end: str
    tries: int
    fails: bool
    decision: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    told: str = ""

    @property
    def is_plain(self) -> bool:
        """Whether its time compares with the other plane's: it was answered at once."""
        return self.end == "right" and self.tries == 1 and not self.fails


def text_and_usage(fmt: str, body: str, *, streams: bool) -> tuple[str, int, int]:
    """Return an answer's text, and its input tokens with those of them that were cached.

    Raises:
        ValueError: it is no answer of the format.
    """
    parts = [body]
    if streams:
        parts = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
    text: list[str] = []
    tokens = cached = 0
    for part in parts:
        if part == "[DONE]":
            continue
        event = json.loads(part)
        if not isinstance(event, dict) or event.get("error"):
            raise ValueError(part)
        text += _texts(fmt, event, streams=streams)
        holder = event.get("message") or event.get("response") or event
        usage = holder.get("usage") or event.get("usageMetadata") or {}
        served = usage.get("cache_read_input_tokens") or 0
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
        whole = usage.get("prompt_tokens") or usage.get("promptTokenCount") or usage.get("input_tokens") or 0
        if fmt == "anthropic":
            tokens, cached = max(tokens, whole + served), max(cached, served)
        else:
            tokens = max(tokens, whole)
            cached = max(cached, details.get("cached_tokens") or usage.get("cachedContentTokenCount") or 0)
    return "".join(text).strip(), tokens, cached


def _texts(fmt: str, event: Mapping[str, Any], *, streams: bool) -> list[str]:
    if fmt == "openai-chat":
        return [(c.get("delta" if streams else "message") or {}).get("content") or "" for c in event.get("choices") or ()]
    if fmt == "gemini":
        contents = [c.get("content") or {} for c in event.get("candidates") or ()]
        return [p.get("text") or "" for content in contents for p in content.get("parts") or ()]
    if fmt == "anthropic":
        return [event.get("delta", {}).get("text") or ""] if streams else [b.get("text") or "" for b in event["content"]]
    if streams:
        return [event["delta"]] if event.get("type") == "response.output_text.delta" else []
    return [c.get("text") or "" for item in event["output"] for c in item.get("content") or ()]


def judged(fmt: str, nonce: str, status: int, body: str, *, streams: bool) -> tuple[str, int, int]:
    """Return how a step ended, as in `Outcome.end`, with the input tokens of its usage and those that were cached."""
    if status == 400 and any(words in body for words in OVERFLOW):
        return "refused", 0, 0
    if status != 200:
        return "error", 0, 0
    try:
        text, tokens, cached = text_and_usage(fmt, body, streams=streams)
    except (ValueError, KeyError, TypeError):
        return ("refused" if any(words in body for words in OVERFLOW) else "wrong"), 0, 0
    if text == answer_to(nonce):
        return "right", tokens, cached
    return ("mixed" if text.startswith("MIXED") else "wrong"), tokens, cached


class Driver:
    """Sends steps at a rate, each session one at a time; `run` may be called again. An async context manager.

    Args:
        urls: of the planes.
        keys: of the tenants.
        sessions: that are alive at once.

    """

    def __init__(self, urls: Mapping[str, str], keys: Sequence[str], sessions: Sequence[Session | RecordedSession]) -> None:
        self._urls, self._keys, self._idle = urls, keys, list(sessions)
        self._random = random.Random(0)
        self._busy: set[asyncio.Task[None]] = set()
        self.outcomes: list[Outcome] = []
        self.late_steps = 0
        """Steps that no session was idle for: the rate was not reached."""

    async def __aenter__(self) -> Driver:
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        self._client = aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def run(self, seconds: float, rate: float, other: asyncio.Task[None] | None = None) -> None:
        """Send so many steps a second for so long, and until another task is done, and wait for the last answer."""
        end, due = time.monotonic() + seconds, time.monotonic()
        while due < end or (other is not None and not other.done()):
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += self._random.expovariate(rate)
            if not self._idle:
                self.late_steps += 1
                continue
            session = self._idle.pop(self._random.randrange(len(self._idle)))
            task = asyncio.create_task(self._both(session))
            self._busy.add(task)
            task.add_done_callback(self._busy.discard)
        if self._busy:
            await asyncio.wait(self._busy)

    async def _both(self, session: Session | RecordedSession) -> None:
        step = session.step()
        planes = PLANES if self._random.random() < 0.5 else PLANES[::-1]
        for plane in planes:
            self.outcomes.append(await self.ask(plane, self._urls[plane], step))
        self._idle.append(session)

    async def ask(self, plane: str, url: str, step: Step) -> Outcome:
        """Send a step until it is answered, refused, or has had its tries."""
        by_session = step.session % 4 < 2
        headers = {
            "authorization": f"Bearer {self._keys[step.tenant]}",
            "content-type": "application/json",
            "x-session-id": f"s{step.session}",
        }
        headers |= {"x-soak-affinity": "1"} if by_session else {}
        told = step.fmt, step.kind, step.size, step.nonce, step.streams
        outcome = Outcome(plane, time.time(), 0, *told, by_session, "error", 0, step.fails)
        began = time.perf_counter()
        leaves_seconds = random.Random(step.nonce).uniform(*LEAVES_SECONDS)
        while outcome.tries < TRIES:
            if outcome.tries:
                await asyncio.sleep(PAUSE_SECONDS * 2 ** (outcome.tries - 1))
            outcome.tries += 1
            try:
                sending = self._sent(url + step.path, headers, step, outcome)
                status = await (asyncio.wait_for(sending, leaves_seconds) if step.leaves else sending)
            except (TimeoutError, asyncio.TimeoutError):
                outcome.end = "left" if step.leaves else "error"
                outcome.told = "" if step.leaves else "no answer in time"
                break
            except aiohttp.ClientError as error:
                outcome.end, outcome.told = "error", repr(error)[:200]
                continue
            if status < 500 and status != 429 and not (outcome.end == "error" and status == 401):
                break
        outcome.seconds = time.perf_counter() - began
        return outcome

    async def _sent(self, url: str, headers: Mapping[str, str], step: Step, outcome: Outcome) -> int:
        async with self._client.post(url, data=step.body, headers=headers) as answer:
            body = await answer.text()
            found = judged(step.fmt, step.nonce, answer.status, body, streams=step.streams)
            outcome.end, outcome.prompt_tokens, outcome.cached_tokens = found
            outcome.decision = answer.headers.get("x-ctx-hooks-decision", "")
            outcome.told = "" if outcome.end == "right" else f"{answer.status} {body[:300]}"
            return answer.status
