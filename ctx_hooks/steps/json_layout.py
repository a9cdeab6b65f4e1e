"""Indented JSON in older results, written compactly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ctx_hooks.steps import Step
from ctx_hooks.steps.results import rewrite_older_results

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation

LARGEST_CHARS = 2_000_000


def compact(text: str) -> str:
    """Return JSON `text` without layout, one top-level member or item a line so that lines stay units; else `text`."""
    if text.lstrip()[:1] not in ("{", "[") or "\n" not in text or len(text) > LARGEST_CHARS:
        return text
    try:
        value = json.loads(text, parse_float=_Literal, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return _lines(value)


class _Literal(float):
    """A number written again exactly as it came: 1.10 stays 1.10."""

    def __new__(cls, literal: str) -> _Literal:
        self = super().__new__(cls, literal)
        self.literal = literal
        return self

    literal: str

    def __repr__(self) -> str:
        return self.literal


def _refuse(name: str) -> None:
    raise ValueError(name)


def _lines(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",\n".join(f"{_dump(k)}:{_dump(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",\n".join(map(_dump, value)) + "]"
    return _dump(value)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    del budget  # lossless: done whenever anything is done
    return rewrite_older_results(conversation, compact)


STEP = Step("json_layout", "the layout of JSON carries no meaning", _apply)
