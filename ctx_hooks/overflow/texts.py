"""An error's own words: its messages and codes, found in exceptions, bodies and JSON, with a bound on all that is read."""

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MOST_CHARS = 2_000
"""The read part of one text. An error's own words come first; the longest of a hundred real ones has 420 characters."""
MOST_TOTAL_CHARS = 4_000
MOST_VALUES = 60
"""Values read in one error, so that neither depth nor breadth of a body costs time. Real ones have under 40."""
MOST_JSON_CHARS = 65_536
"""Parsing this much takes under 2 ms, in one call that holds the interpreter's lock."""
MOST_PREFIX_CHARS = 300
MOST_ITEMS = 3
"""Items read of a list of errors; validation errors come by the thousand and repeat each other."""
MOST_CODE_CHARS = 64
MOST_SENTENCE_CHARS = 300
"""Quoted of a provider's message in the final error: two or three sentences."""
MESSAGE_KEYS = (
    *("message", "error", "detail", "errorMessage", "error_message", "msg", "response", "errors", "raw"),
    *("error_msg", "base_resp", "status_msg"),
)
"""The keys of a body's own words; all others may echo the request."""
CODE_KEYS = ("code", "type", "error_type", "status")
_ECHO = r"(?:input_value|'input'|\"input\"|\"content\"|'content'|\"messages\"|'messages'|input)\s?[=:]"
_TRACE = re.compile(
    r"Traceback \(most recent call last|File \\{0,4}[\"'][^\"'\n]{1,300}[\"'], line \d|(?:^|\n|\\n)\s{0,40}at [\w.$<>/ ]{1,80}\(|"
    r"goroutine \d{1,9} \[|panicked at |stack ?trace",
    re.IGNORECASE,
)
_VALUE = (
    r"\b(?:invalid|illegal|unsupported|unexpected|unrecogni[sz]ed|unknown|disallowed|got|received|given|found|value|"
    r"not (?:supported|valid|allowed))\b(?! (?:request|response|body|error))[^'\"`“‘]{0,40}['\"`“‘](?=[^\s'\"`]{1,60} \S{1,60} \S)"
)
_QUOTED = re.compile(f"{_ECHO}|(?i:{_TRACE.pattern}|{_VALUE})")
"""The end of an error's own words: the request that it quotes, an invalid value of it, or a stack trace."""
_UNREADABLE = re.compile(
    r"invalid response object|received_args ?=|original response(?: received)?:|unable to get json response|"
    r"empty or invalid response from|json_?decode_?error|"
    r"(?:error|unable to|failed to|could not|cannot|can't) (?:pars|process|decod)\w* ?"
    r"(?:=|(?:\w+ ){0,3}(?:response|answer|chunk|completion|output|text=|text =))|"
    r"validation errors? for (?!\w*request)\w*(?:response|usage|choice|message|chunk|delta|details|completion)",
    re.IGNORECASE,
)
"""LiteLLM's wordings for an unreadable answer. Such an error quotes the answer, which may contain any words."""
_NO_WORDS = re.compile(r"https?://\S+|LiteLLM (?:Retried: \d+ times|Max Retries: \d+)", re.IGNORECASE)
_PREFIX = re.compile(
    r"(?:(?:litellm\.)?\w{0,60}(?:Exception|Error): ?|\w{1,60}Exception(?: \w{1,60})? ?- ?|Error code: \d{3} - |"
    r"[{\[\s'\"]{1,6}(?:error|message|detail)['\"]?: ?['\"]?){1,8}"
)
SENTENCE_END = re.compile(r"(?<=[.!?]) |(?<=[。！？；])")


@dataclass(frozen=True, slots=True)
class OwnWords:
    """An error's own words, outermost first; `quotes`: it has others too, of the request or of an unreadable answer."""

    texts: tuple[str, ...]
    codes: tuple[str, ...]
    quotes: bool = False


def own_words(*sources: Any) -> OwnWords:
    """Return the messages and codes of exceptions, bodies and texts, and of their causes, breadth first."""
    texts: dict[str, None] = {}
    codes: dict[str, None] = {}
    queue, quotes, room = deque(sources), False, MOST_TOTAL_CHARS
    for _ in range(MOST_VALUES):
        if not queue or room <= 0:
            break
        value = queue.popleft()
        if isinstance(value, bytes):  # the part of a refused stream that a client has read
            value = value[:MOST_JSON_CHARS].decode("utf-8", "replace")
        if not isinstance(value, str):
            own, parts = _inside(value)
            codes.update({code: None for code in own if isinstance(code, str) and len(code) <= MOST_CODE_CHARS})
            queue.extend(part for part in parts if part is not None)
            continue
        text = value[:MOST_CHARS]
        if quoted := _QUOTED.search(text):
            text, quotes = text[: quoted.start()], True
        if _UNREADABLE.search(text):
            return OwnWords((), (), quotes=True)
        body = _embedded(value, len(text) if quoted else MOST_PREFIX_CHARS)
        if body is not None:
            queue.append(body)
        elif text := text[:room].strip():
            room -= 0 if text in texts else len(text)
            texts[text] = None
    return OwnWords(tuple(texts), tuple(codes), quotes=quotes)


def plain(text: str) -> str:
    """Return a text as patterns read it: lower-case, on one line, without words that say nothing about the error."""
    return " ".join(_NO_WORDS.sub("", text).lower().split())


def beginning_of(text: str) -> str:
    """Return the start of a provider's message: one printable line of at most 300 characters."""
    prefix = _PREFIX.match(text)
    own = text[prefix.end() if prefix else 0 :]
    line = " ".join("".join(c if c.isprintable() else " " for c in own).split())
    return line if len(line) <= MOST_SENTENCE_CHARS else line[: MOST_SENTENCE_CHARS - 1] + "…"


def _inside(value: Any) -> tuple[list[Any], list[Any]]:
    """Return the codes of an exception or mapping, and the values with its words, or those of a list."""
    if isinstance(value, BaseException):
        codes = [getattr(value, "code", None), getattr(value, "type", None)]
        words = [getattr(value, "message", None), getattr(value, "detail", None)]
        # An exception without its own `__str__` shows its arguments, and showing a large body as text takes long.
        words += value.args[:MOST_ITEMS] if type(value).__str__ is BaseException.__str__ else (str(value),)
        return codes, [*words, getattr(value, "body", None), value.__cause__]
    if isinstance(value, Mapping):
        beside = value.get("metadata")  # OpenRouter's, with its provider's own words
        named = value.get("param")  # Xiaomi's says in it what is wrong, OpenAI's has a name, which may be the caller's
        words = [
            f"param {named}" if isinstance(named, str) else None,
            beside.get("raw") if isinstance(beside, Mapping) else None,
        ]
        return [*map(value.get, CODE_KEYS)], [*map(value.get, MESSAGE_KEYS), *words]
    return [], list(value[:MOST_ITEMS]) if isinstance(value, (list, tuple)) else []


def _embedded(text: str, own_chars: int) -> Any:
    """Return the JSON that an error text is, or carries after its prefix, in its own words; None if there is none."""
    start = text.find("{", 0, min(own_chars, MOST_PREFIX_CHARS))
    if start < 0 or len(text) > MOST_JSON_CHARS or _TRACE.search(text, 0, start):
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not value.keys().isdisjoint(MESSAGE_KEYS) else None
