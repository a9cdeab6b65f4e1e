"""Tokens from the look of a text alone, for texts that no vocabulary here can count."""

from __future__ import annotations

import math
import re

# Figures: words and numbers 1 each, CJK characters 0.7, CJK and other punctuation 1 each, all times 1.10.
WORD_TOKENS = 1.0
CJK_CHARACTER_TOKENS = 0.7
SAFETY_FACTOR = 1.10
LONGEST_WORD_CHARS = 8
"""A longer run of letters or digits is split by every vocabulary, about every eight characters."""

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[^\W_{_CJK}]{{1,{LONGEST_WORD_CHARS}}}|[^\w\s]|_")


def heuristic_tokens(text: str) -> int:
    """Return an estimate of the tokens of `text`, in time linear in its length."""
    cjk = len(_CJK_CHARACTER.findall(text))
    words = len(_WORD.findall(text))
    return math.ceil((words * WORD_TOKENS + cjk * CJK_CHARACTER_TOKENS) * SAFETY_FACTOR)
