"""Classify sentences: directives, sentences with a value, and those that a later one corrects."""

import re
from collections.abc import Iterator, Mapping, Sequence

from ctx_hooks.texts import pieces

LONGEST_SENTENCE_CHARS = 600
"""A longer stretch without an end is no sentence."""
LONGEST_CORRECTED_CHARS = 300
"""A correction seldom repeats more text."""
LONGEST_VALUE_WORDS, LEAST_SAME_WORDS = 3, 3
"""A later sentence corrects an earlier one if at most this many adjacent words differ, all of them values (a date, a name, a
sum), and at least this many are the same."""

_END = re.compile(
    r"\n\s*|(?<!\A\d)(?<!\n\d)(?<!\n\d\d)(?<![.!?])[.!?]{1,8}[\"')\]”’»*_]{0,4}(?=\s)\s*|[。!?]+[」』”’)]{0,4}\s*"
)
"""The number of a list's item ends no sentence."""
_DIRECTIVE = re.compile(
    r"\b(?:must|never|always|do not|don['’]t|should|prefer|rather|want|need|keep|use|not|without|now|changed|only|make sure"
    r"|ensure|instead|avoid|please|remember|from now on|no longer|at most|at least|deadline"
    r"|muss|nie|niemals|immer|bitte|nicht|nur|ab jetzt|keine?|lieber|brauche|ohne|jetzt|geändert"
    r"|jamais|toujours|doit|désormais|uniquement|seulement|évite[rz]?|dorénavant|plutôt|garde[rz]?|sans|pas|maintenant|changé"
    r"|nunca|siempre|debes?|solo|sólo|evita|a partir de ahora|quiero|sin|ahora|sempre|mai|deve"
    r"|никогда|всегда|должн\w+|нельзя|только|пожалуйста|теперь|без)\b"
    r"|必须|务必|不要|不得|永远|总是|始终|只能|仅|请|从现在起|避免|截止|改为|改成|现在"
    r"|必ず|決して|常に|ください|しないで|今後|変更|반드시|절대|항상|마세요|앞으로|변경",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"[\s#>*-]{0,8}[A-Z][A-Z0-9 _/-]{2,40}:\s")
"""A label in capitals marks text that should be kept (RULE:, DECISION:, NOTE:)."""
_CJK = "\u3040-\u9fff\uac00-\ud7af"
_VALUE = re.compile(rf"\d|\w[_/@]\w|[a-z][A-Z]|[\"“«„「『《`]|[{_CJK}]\s?[A-Za-z]")
_NOT_FIRST = re.compile(r"(?<![.!?:\n]\s)(?<=\s)[^\W\d_]\w[\w'’]*")
"""A word inside a sentence: if it has a capital, it is a name, or a German noun; "I'll" is none."""
_WORD = re.compile(rf"[^\W{_CJK}][\w$€£./@#:-]*|[$€£]\d[\w./:-]*|\S")


def sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences and lines between two offsets, without gaps; very long ones in pieces."""
    for a, b in pieces.spans(text[start:end]):
        begin = start + a
        for stop in (*(found.end() for found in _END.finditer(text, start + a, start + b)), start + b):
            for piece in range(begin, stop, LONGEST_SENTENCE_CHARS):
                yield piece, min(piece + LONGEST_SENTENCE_CHARS, stop)
            begin = stop


def directs(text: str, start: int, end: int) -> bool:
    """Whether a span of `text` says what to do or not to do, or has a label of its own."""
    return _LABELLED.match(text, start, end) is not None or _DIRECTIVE.search(text, start, end) is not None


def tells(text: str, start: int, end: int) -> bool:
    """Whether a span of `text` has a figure, a name, code or a quotation."""
    later_words = (found for found in _NOT_FIRST.finditer(text, start, end) if found.start() > start)
    return _VALUE.search(text, start, end) is not None or any(found[0][0].isupper() for found in later_words)


def corrections(sentences: Sequence[str]) -> Mapping[int, int]:
    """Return the number of each corrected sentence, with the number of the later one that repeats it with another value."""
    newest: dict[tuple[str, ...], tuple[int, list[str]]] = {}
    corrected = {}
    for number in reversed(range(len(sentences))):
        if len(sentences[number]) > LONGEST_CORRECTED_CHARS:
            continue
        words = _WORD.findall(sentences[number])
        frame = tuple("" if n and (word[0].isupper() or _VALUE.search(word)) else word for n, word in enumerate(words))
        after, others = newest.get(frame, (number, words))
        differing = [n for n, pair in enumerate(zip(words, others, strict=True)) if pair[0] != pair[1]]
        count = differing[-1] + 1 - differing[0] if differing else 0
        if 0 < count <= min(LONGEST_VALUE_WORDS, len(words) - LEAST_SAME_WORDS):
            corrected[number] = after
        newest[frame] = (number, words)
    return corrected
