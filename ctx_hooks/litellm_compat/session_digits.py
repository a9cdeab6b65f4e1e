"""The digits by which a share of all sessions is chosen: the same for each request of a conversation, in every process."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from itertools import islice, takewhile
from typing import Any

from ctx_hooks.formats.fields import mapping_or_empty

SESSION_DIGITS = 4
"""Hexadecimal: shares of sessions in steps of 0.002 %, and too few to guess from them how a conversation begins."""
MESSAGES_FIELDS = ("messages", "input", "contents")
BEGINNING_CHARS = 4_096
MOST_ITEMS = 50
"""Instructions may stand before the first message of the user, reminders in it. No more is looked at, since the event loop
does it for each request."""
_BEFORE_ANSWERS = ("user", "system", "developer")


def digits_of(tenant: str, fields: Mapping[str, Any]) -> str:
    """Return `SESSION_DIGITS` digits of a digest of the tenant and of how the conversation of a request begins."""
    text = f"{tenant}:{_beginning(fields)}"
    return blake2b(text.encode("utf-8", "replace")).hexdigest()[:SESSION_DIGITS]


def _beginning(fields: Mapping[str, Any]) -> str:
    """Return how each message of the user before the first answer begins, which all requests of a conversation have.

    The first one may be the same in all conversations about a project: Codex sends its AGENTS.md so.
    """
    items = next((found for name in MESSAGES_FIELDS if (found := fields.get(name))), "")
    if isinstance(items, str):
        return items[:BEGINNING_CHARS]
    listed = islice(items, MOST_ITEMS) if isinstance(items, (list, tuple)) else [items]
    before = takewhile(lambda item: _role(item) in _BEFORE_ANSWERS, map(mapping_or_empty, listed))
    texts = (text for item in before if _role(item) == "user" for text in _texts(item))
    return "".join(text[:BEGINNING_CHARS] for text in islice(texts, MOST_ITEMS))


def _role(item: Mapping[str, Any]) -> str:
    """Return who speaks; at Google a message without a role is the user's."""
    return str(item.get("role") or ("user" if "parts" in item else ""))


def _texts(item: Mapping[str, Any]) -> list[str]:
    said = item.get("content") or item.get("parts")
    parts = said if isinstance(said, (list, tuple)) else [{"text": said}]
    found = (mapping_or_empty(part).get("text") for part in islice(parts, MOST_ITEMS))
    return [text for text in found if isinstance(text, str)]
