"""The two vocabularies that LiteLLM ships, loaded without a network."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import tiktoken

VocabularyName = Literal["cl100k_base", "o200k_base"]
DEFAULT: VocabularyName = "o200k_base"


def vocabulary_of(model: str | None) -> VocabularyName:
    """Return the vocabulary that counts for `model` (a LiteLLM model name, with or without provider prefix).

    OpenAI's models have theirs. None of the others has its vocabulary here: they count in o200k_base, which is within 21 %
    of the median of six vocabularies of today in each of twenty languages (`benchmarks/languages.py`). cl100k_base counts
    two to three times as much as they in Greek, Arabic, Hebrew, Thai, Hindi and Bengali.
    """
    try:
        found = tiktoken.encoding_name_for_model((model or "").rsplit("/", 1)[-1])
    except KeyError:
        return DEFAULT
    return "cl100k_base" if found == "cl100k_base" else DEFAULT


@lru_cache(maxsize=2)
def encoding(name: VocabularyName) -> tiktoken.Encoding:
    """Return the vocabulary `name` from LiteLLM's own files; raises OSError when they are not there and cannot be had."""
    _use_bundled_files()
    return tiktoken.get_encoding(name)


def load_all() -> None:
    """Load both vocabularies: doing it on the first request would hold up the others for a moment."""
    for name in get_args(VocabularyName):
        encoding(name).encode_ordinary("")


def _use_bundled_files() -> None:
    """Point tiktoken at the files inside LiteLLM, as LiteLLM does on import; an operator's own setting stands."""
    spec = find_spec("litellm")
    roots = spec.submodule_search_locations if spec else None
    for root in roots or ():
        folder = Path(root, "litellm_core_utils", "tokenizers")
        if folder.is_dir():
            os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))
