"""The sessions that the soak sends: generated and recorded agents that grow step by step, the same to both planes."""

from __future__ import annotations

import base64
import json
import random
import re
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any

import orjson

from ctx_hooks.testing.conversations import asked, exchange, read_tool, source_text
from ctx_hooks.testing.gemini import addressed
from ctx_hooks.testing.rules import Format, violations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FORMATS: tuple[Format, ...] = ("openai-chat", "anthropic", "openai-responses", "gemini")
PATHS = {
    "openai-chat": "/v1/chat/completions",
    "anthropic": "/v1/messages",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/",
}
KINDS = ("wide", "tight", "figures", "bare")
"""What a deployment's window does: it holds all, the plugin knows it, or the provider refuses with figures or without."""
SIZES = {"4 KB": (1, 700, 8), "64 KB": (12, 3_500, 26), "600 KB": (80, 6_500, 110)}
"""Turns at the start, characters a turn, and turns after which a session begins anew."""
MIX = (
    ("wide", "4 KB", 100),
    ("wide", "64 KB", 40),
    ("wide", "600 KB", 10),
    ("tight", "64 KB", 30),
    ("figures", "64 KB", 10),
    ("bare", "64 KB", 10),
)
"""Sessions of each kind and size, of two hundred."""
WINDOW_TOKENS = 12_000
WIDE_TOKENS = 400_000
"""Requests of 600 KB fit, but only a count shows it; smaller ones are let pass."""
IMAGE_BYTES = 200_000
IMAGE_SHARE, LEAVES_SHARE, FAILS_SHARE = 0.03, 0.02, 0.01
"""Of the small sessions' steps those with an image; of all, those whose client leaves, and whose provider fails once."""
RECORDED_CHARS = 150_000
POOL_CHARS = 2_000_000
SAID = " ".join(f"word{n}" for n in range(30))
NONCE = re.compile(r"nonce-([0-9a-f]{16})")
MARK = re.compile(r"\[tenant \d+ session \d+\]")


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a session.

    Attributes:
        session, tenant: their numbers.
        fmt: the request's format.
        kind: the deployment's, one of KINDS.
        size: one of SIZES, `image` or `recorded`.
        nonce: what the answer has to hold.
        path: of the route.
        body: the JSON body.
        streams: whether it asks for a stream.
        leaves: whether the client leaves before the answer.
        fails: whether the provider answers 500 once.
    """

    session: int
    tenant: int
    fmt: Format
    kind: str
    size: str
    nonce: str
    path: str
    body: bytes
    streams: bool
    leaves: bool
    fails: bool


def answer_to(nonce: str) -> str:
    """Return the answer that the provider gives to the request with that nonce."""
    return f"Answer nonce-{nonce} {SAID}"


def provider_answer(fmt: Format, payload: dict[str, Any]) -> tuple[str, bool]:
    """Return the nonce of a request's newest message, "" for none, and whether texts of two sessions are in the request."""
    items = payload["input" if fmt == "openai-responses" else "contents" if fmt == "gemini" else "messages"]
    found = NONCE.search(json.dumps(items[-1]))
    marks = set(MARK.findall(orjson.dumps(items).decode()))
    return found[1] if found else "", len(marks) > 1


def fails_first(nonce: str) -> bool:
    """Whether the provider answers the first request with this nonce 500."""
    return int(nonce[:8], 16) < FAILS_SHARE * 16**8


def png(size_bytes: int, seed: int) -> str:
    """Return a picture of about `size_bytes` that no compression makes smaller, in base64."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 512, 512, 8, 2, 0, 0, 0)),
        (b"IDAT", random.Random(seed).randbytes(size_bytes)),
    ]
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return base64.b64encode(data).decode()


def shown(fmt: Format, text: str, picture: str) -> dict[str, Any]:
    """Return a user's message with a text and a picture."""
    if fmt == "gemini":
        return {"role": "user", "parts": [{"text": text}, {"inlineData": {"mimeType": "image/png", "data": picture}}]}
    url = f"data:image/png;base64,{picture}"
    parts: tuple[Any, Any] = {"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}
    if fmt == "anthropic":
        parts = parts[0], {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": picture}}
    if fmt == "openai-responses":
        parts = {"type": "input_text", "text": text}, {"type": "input_image", "image_url": url, "detail": "auto"}
    return {"role": "user", "content": list(parts)}


@cache
def pool() -> str:
    """Return the text that generated tool results are cut from."""
    return source_text(random.Random(0), POOL_CHARS)


class Session:
    """A generated session; `step` is its next request."""

    def __init__(self, number: int, tenants: int, kind: str, size: str) -> None:
        self.number, self.tenant = number, number % tenants
        self.kind, self.size = kind, size
        self.fmt = FORMATS[number // tenants % 4] if number >= tenants else FORMATS[number % 4]
        self.streams = number % 2 == 0
        self._random = random.Random(number)
        self._begun = count()
        self._restart()

    def _restart(self) -> None:
        self._life = next(self._begun)
        self._mark = f"[tenant {self.tenant} session {self.number * 10_000 + self._life}]"
        self._turn = 0
        self._messages = [asked(self.fmt, f"{self._mark} Review project {self.number} and note every risk.")]
        for _ in range(SIZES[self.size][0] - 1):
            self._grow("")

    def _grow(self, nonce: str) -> None:
        chars = self._random.randrange(SIZES[self.size][1] // 2, SIZES[self.size][1] * 3 // 2)
        start = self._random.randrange(POOL_CHARS - chars)
        text = f"{nonce} {self._mark} turn {self._turn}\n{pool()[start : start + chars]}"
        path = f"src/m{self.number}/file_{self._turn}.py"
        call = f"call_{self.number}_{self._life}_{self._turn}"
        said = f"I will look at {path} next."
        self._messages += exchange(self.fmt, call, path, said, text, thinking=False)
        self._turn += 1

    def step(self) -> Step:
        """Return the next request."""
        if self._turn >= SIZES[self.size][2]:
            self._restart()
        nonce = f"{self._random.getrandbits(64):016x}"
        self._grow(f"nonce-{nonce}")
        messages, size = self._messages, self.size
        if self.size == "4 KB" and self._random.random() < IMAGE_SHARE:
            text, size = f"nonce-{nonce} {self._mark} And this picture?", "image"
            lead = [*self._messages, *answered(self.fmt, "I have read it.")]
            messages = [*lead, shown(self.fmt, text, png(IMAGE_BYTES, self._random.getrandbits(32)))]
            # A picture is sent once: sent again it would take the machine's time and hold no more.
            self._messages = [*lead, asked(self.fmt, text), *answered(self.fmt, "A picture."), asked(self.fmt, "Go on.")]
        return made(self, size, nonce, messages, self._random)


class RecordedSession:
    """A recorded session, sent up to each of the agent's own messages in turn."""

    def __init__(self, number: int, tenants: int, kind: str, fmt: Format, messages: Sequence[dict[str, Any]]) -> None:
        self.number, self.tenant, self.kind, self.fmt = number, number % tenants, kind, fmt
        self.streams = number % 2 == 0
        self._random = random.Random(number)
        self._messages = messages
        self._ends = [
            n for n, m in enumerate(messages) if n and m.get("role") == "assistant" and _takes_text(messages[n - 1])
        ]
        self._ends = [n for n in self._ends if len(orjson.dumps(messages[:n])) < RECORDED_CHARS]
        self._ends = [n for n in self._ends if not [*violations(fmt, _payload(fmt, "", messages[:n]))]]
        self._next = 0

    @property
    def is_usable(self) -> bool:
        """Whether any of its requests keeps the provider's rules."""
        return bool(self._ends)

    def step(self) -> Step:
        """Return the next request; behind the last comes the first."""
        nonce = f"{self._random.getrandbits(64):016x}"
        end = self._ends[self._next % len(self._ends)]
        self._next += 1
        last = self._messages[end - 1]
        content = last["content"]
        with_nonce = (
            f"nonce-{nonce}\n{content}"
            if isinstance(content, str)
            else [*content, {"type": "text", "text": f"nonce-{nonce}"}]
        )
        return made(self, "recorded", nonce, [*self._messages[: end - 1], {**last, "content": with_nonce}], self._random)


def _takes_text(message: dict[str, Any]) -> bool:
    content = message.get("content")
    return message.get("role") in ("user", "tool") and (
        isinstance(content, str) or (isinstance(content, list) and message["role"] == "user")
    )


def answered(fmt: Format, text: str) -> list[dict[str, Any]]:
    """Return the assistant's message of a text."""
    if fmt == "gemini":
        return [{"role": "model", "parts": [{"text": text}]}]
    if fmt == "openai-responses":
        return [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
    return [{"role": "assistant", "content": text}]


def _payload(fmt: Format, group: str, messages: Sequence[Any]) -> dict[str, Any]:
    payload: dict[str, Any] = {"model": group, "tools": [read_tool(fmt)]}
    system = "You are a careful reviewer."
    if fmt == "openai-chat":
        lead = [] if messages[0].get("role") == "system" else [{"role": "system", "content": system}]
        return payload | {"messages": [*lead, *messages], "max_tokens": 256}
    if fmt == "anthropic":
        return payload | {"messages": messages, "system": system, "max_tokens": 256}
    if fmt == "gemini":
        return payload | {"contents": messages, "systemInstruction": {"parts": [{"text": system}]}}
    return payload | {"input": messages, "instructions": system, "store": False}


def made(session: Session | RecordedSession, size: str, nonce: str, messages: Sequence[Any], chance: random.Random) -> Step:
    """Return a session's messages as a request."""
    fmt, path = session.fmt, PATHS[session.fmt]
    payload = _payload(fmt, f"{session.kind}-{fmt}", messages)
    if fmt == "gemini":
        method, payload = addressed(payload, stream=session.streams)
        path += method
    elif session.streams:
        payload |= {"stream": True} | ({"stream_options": {"include_usage": True}} if fmt == "openai-chat" else {})
    return Step(
        session.number, session.tenant, fmt, session.kind, size, nonce, path, orjson.dumps(payload), session.streams,
        chance.random() < LEAVES_SHARE, fails_first(nonce),
    )  # fmt: skip


def generated(sessions: int, tenants: int) -> list[Session]:
    """Return so many sessions of the kinds and sizes of MIX."""
    total = sum(number for _, _, number in MIX)
    kinds = [(kind, size) for kind, size, number in MIX for _ in range(number)]
    random.Random(1).shuffle(kinds)
    return [Session(n, tenants, *kinds[n * total // sessions]) for n in range(sessions)]


def recorded(
    found: Sequence[tuple[Format, Sequence[dict[str, Any]]]], first: int, tenants: int
) -> Iterator[RecordedSession]:
    """Yield the recorded sessions that keep the provider's rules, from number `first` on, in a wide and a tight window."""
    number = first
    for fmt, messages in found:
        session = RecordedSession(number, tenants, KINDS[number % 2], fmt, messages)
        if session.is_usable:
            yield session
            number += 1
