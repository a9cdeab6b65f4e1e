"""Count a conversation, each text once, in one of the two vocabularies that LiteLLM ships; loading needs no network."""

import math
import os
import re
from collections import Counter as Occurrences
from collections.abc import Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import tiktoken

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Media, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ctx_hooks.formats.fields import RESPONSES
from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.tokens.media import media_tokens
from ctx_hooks.tokens.units import LocalTokens

VocabularyName = Literal["cl100k_base", "o200k_base"]
DEFAULT: VocabularyName = "o200k_base"
MESSAGE_TOKENS, CALL_TOKENS, RESULT_TOKENS = 4, 4, 3
"""Tokens besides the content (OpenAI's cookbook for messages: 3 and one for the role; else estimates)."""
SMALL_TEXT_CHARS = 64
"""Up to this length the text itself is the key in the cache."""
PIECE_CHARS = 5_000
"""Texts are encoded in pieces of this length: one unbroken run of a million characters would take minutes."""
OTHER_SCRIPTS = re.compile(r"[^\x00-\u036f\u1e00-\u1eff\u2000-\u2bff]+")
"""Characters other than Latin letters, accents, punctuation, symbols and boxes: only here vocabularies differ by factors."""
LONG_RUNS = re.compile(r"[A-Za-z0-9+/=_-]{40,}")
"""Hardly any word or name is as long; base64 and hexadecimal among words form such runs."""
ASCII = bytes(range(128))
LEAST_CHARS_PER_TOKEN = 2
"""ASCII with fewer is base64 or figures: base64 has 1.5 in o200k_base, hexadecimal 1.8, JSON 2.2, code 4.3."""

_counts: ContentCache[tuple[int, int]] = ContentCache()


def vocabulary_of(model: str | None) -> VocabularyName:
    """Return the vocabulary that counts for a LiteLLM model name: OpenAI's own, else o200k_base."""
    try:
        found = tiktoken.encoding_name_for_model((model or "").rsplit("/", 1)[-1])
    except KeyError:
        return DEFAULT
    return "cl100k_base" if found == "cl100k_base" else DEFAULT


@lru_cache(maxsize=2)
def encoding(name: VocabularyName) -> tiktoken.Encoding:
    """Return a vocabulary from LiteLLM's own files, unless the operator has set tiktoken's folder; raises OSError."""
    spec = find_spec("litellm")
    for root in (spec.submodule_search_locations if spec else None) or ():
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(Path(root, "litellm_core_utils", "tokenizers")))
    return tiktoken.get_encoding(name)


def load_vocabularies() -> None:
    """Load both vocabularies, before a first request waits for them."""
    for name in get_args(VocabularyName):
        encoding(name).encode_ordinary("")


class Counter:
    """Counts in one vocabulary, for one request; it counts each message and conversation only once.

    Each first count of a text or message checks the `deadline`. `other_weight` is the weight of a token of other scripts,
    figures and base64: with it, one factor converts local to provider tokens, whatever the mix.
    """

    def __init__(self, vocabulary: VocabularyName, deadline: Deadline | None = None, other_weight: float = 1.0) -> None:
        self.vocabulary = vocabulary
        self.deadline = deadline or Deadline()
        self.other_weight = other_weight
        self._seen: dict[int, tuple[Message | Conversation, LocalTokens]] = {}
        self._texts: dict[str, tuple[int, int]] = {"": (0, 0)}

    def text(self, text: str) -> LocalTokens:
        """Return the tokens of `text`; those of other scripts count with their weight."""
        tokens, others = self._counted(text)
        return LocalTokens(tokens + math.ceil(others * (self.other_weight - 1)))

    def others(self, messages: Iterable[Message], preamble: Iterable[str] = ()) -> LocalTokens:
        """Return how many tokens are of other scripts, figures or base64, without their weight."""
        parts = [p for message in messages for p in _flat(message)]
        texts = [t for p in parts for t in ((p.name, p.arguments) if isinstance(p, ToolCall) else (p.text,))]
        return LocalTokens(sum(self._counted(t)[1] for t in (*preamble, *texts)))

    def part(self, part: Part, fmt: str) -> int:
        """Return the tokens of one part."""
        if isinstance(part, Text):
            return self.text(part.text)
        if isinstance(part, (Reasoning, Opaque)):
            return self.text(part.text) + sum(self.part(media, fmt) for media in part.media)
        if isinstance(part, ToolCall):
            return CALL_TOKENS + self.text(part.name) + self.text(part.arguments)
        if isinstance(part, ToolResult):
            return RESULT_TOKENS + sum(self.part(p, fmt) for p in part.parts)
        return media_tokens(part, fmt) + self.text(part.text)

    def message(self, message: Message, fmt: str) -> LocalTokens:
        """Return the tokens of one message or item, with its fixed cost."""
        if (seen := self._seen.get(id(message))) is not None:
            return seen[1]
        self.deadline.check()
        name = self.text(message.name) + 1 if message.name else 0
        tokens = LocalTokens(MESSAGE_TOKENS + name + sum(self.part(p, fmt) for p in message.parts))
        self.know(message, tokens)
        return tokens

    def know(self, counted: Message | Conversation, tokens: LocalTokens) -> None:
        """Remember `tokens` as the count of this object."""
        self._seen[id(counted)] = (counted, tokens)  # while the object is kept, no other gets its id

    def guessed(self, message: Message, fmt: str) -> LocalTokens:
        """Return how many of a message's tokens are a guess: media, unknown parts and reasoning."""
        # The sealed reasoning of the Responses API is in every request of a session, and fills the window.
        counted = (Text, ToolCall, Reasoning) if fmt == RESPONSES else (Text, ToolCall)
        return LocalTokens(sum(self.part(p, fmt) for p in _flat(message) if not isinstance(p, counted)))

    def messages(self, messages: Iterable[Message], fmt: str) -> LocalTokens:
        """Return the tokens of several messages."""
        return LocalTokens(sum(self.message(m, fmt) for m in messages))

    def conversation(self, conversation: Conversation) -> LocalTokens:
        """Return the tokens of the whole request: preamble and messages."""
        if (seen := self._seen.get(id(conversation))) is not None:
            return seen[1]
        preamble = sum(map(self.text, conversation.preamble))
        tokens = LocalTokens(preamble + self.messages(conversation.messages, conversation.format))
        self.know(conversation, tokens)
        return tokens

    def _counted(self, text: str) -> tuple[int, int]:
        """Return the tokens of `text`, and how many of them are of other scripts, figures or base64."""
        if (counted := self._texts.get(text)) is None:
            key = (self.vocabulary, text if len(text) <= SMALL_TEXT_CHARS else digest(text))
            counted = self._texts[text] = _counts.get(key, lambda: self._encoded(text))
        return counted

    def _encoded(self, text: str) -> tuple[int, int]:
        self.deadline.check()
        if len(text) <= PIECE_CHARS:
            return self._encoded_piece(text)
        pieces = Occurrences(text[i : i + PIECE_CHARS] for i in range(0, len(text), PIECE_CHARS))
        counts = [(times, *self._encoded_piece(piece)) for piece, times in pieces.items()]
        return sum(times * tokens for times, tokens, _ in counts), sum(times * others for times, _, others in counts)

    def _encoded_piece(self, piece: str) -> tuple[int, int]:
        encode = encoding(self.vocabulary).encode_ordinary
        tokens = len(encode(piece))
        if piece.isascii():
            if len(piece) > SMALL_TEXT_CHARS and tokens * LEAST_CHARS_PER_TOKEN > len(piece):
                return tokens, tokens
            runs = [(len(run), len(encode(run))) for run in LONG_RUNS.findall(piece)]
            return tokens, min(tokens, sum(n for chars, n in runs if n * LEAST_CHARS_PER_TOKEN > chars))
        beyond_ascii = piece.encode("utf-8", "surrogatepass").translate(None, ASCII).decode("utf-8", "surrogatepass")
        others = "".join(OTHER_SCRIPTS.findall(beyond_ascii))
        return tokens, min(tokens, len(encode(others))) if others else 0


def _flat(message: Message) -> list[Text | Reasoning | Opaque | ToolCall | Media]:
    return [p for part in message.parts for p in (part.parts if isinstance(part, ToolResult) else (part,))]
