"""Compaction items of the plugin: what a conversation needs to go on, sealed for one tenant.

An item is the client's: it comes back in later requests, on any worker, after a restart, for any model. Only this proxy can
make one, and it opens only for the tenant for whom it was made.
"""

import base64
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ctx_hooks.formats.fields import compact_json, mapping_or_empty, text_or_empty
from ctx_hooks.litellm_compat.deployments import configuration
from ctx_hooks.store import sealing

COMPACTION, TRIGGER = "compaction", "compaction_trigger"
FAMILY = "ctx_hooks."
"""No provider's item begins so: an item of a provider is left as it is."""
VERSION = f"{FAMILY}1."
HANDLE = "compaction"
MOST_STATE_BYTES = 1_000_000
"""Of the opened JSON: a state has some ten thousand tokens."""
MOST_SEALED_CHARS = 2_000_000
"""A longer item cannot be ours, and is not decoded."""
MOST_ITEMS = 16
"""In one request: a client keeps the newest one."""
WHITE = re.compile(r"\s+")


class ItemError(Exception):
    """A compaction item that cannot be opened; its text is for the client."""


def secret() -> bytes:
    """Return the proxy's secret: its archive key, else LiteLLM's salt key or master key, b"" without any."""
    general = mapping_or_empty(configuration().get("general_settings"))
    named = (os.environ.get("LITELLM_SALT_KEY"), os.environ.get("LITELLM_MASTER_KEY"), general.get("master_key"))
    stated = next((text for text in map(text_or_empty, named) if text), "")
    return sealing.secret_of_environment() or stated.encode("utf-8", "surrogatepass")


def sealed(items: Sequence[Any], tenant: str, key: bytes) -> dict[str, Any]:
    """Return the compaction item that holds input items for a tenant.

    Raises:
        ItemError: the items are too large.
    """
    text = compact_json(list(items))
    if len(text.encode("utf-8", "replace")) > MOST_STATE_BYTES:
        raise ItemError("the state is too large for a compaction item")
    value = sealing.sealed(text, sealing.tenant_key(HANDLE, tenant, key), HANDLE, key)
    content = VERSION + base64.urlsafe_b64encode(value).decode("ascii")
    return {"id": f"cmp_{os.urandom(16).hex()}", "type": COMPACTION, "encrypted_content": content}


def is_own(item: Any) -> bool:
    """Whether an input item claims to be one of the plugin's."""
    found = mapping_or_empty(item)
    return found.get("type") == COMPACTION and text_or_empty(found.get("encrypted_content")).startswith(FAMILY)


def opened(items: Sequence[Any], tenant: str, key: bytes) -> list[Any]:
    """Return input items with the state of each of the plugin's items in its place.

    A client sends the user's messages again beside the item: a text that stands in the request is left out of the state.

    Raises:
        ItemError: an item is forged, damaged, of another version or of another tenant, or there are too many.
    """
    if sum(map(is_own, items)) > MOST_ITEMS:
        raise ItemError(f"A request may have at most {MOST_ITEMS} compaction items.")
    said = {text for item in items if not is_own(item) for text in _texts_of_user(item)}
    found: list[Any] = []
    for item in items:
        found += _without(said, _state_of(item, tenant, key)) if is_own(item) else [item]
    return found


def _state_of(item: Mapping[str, Any], tenant: str, key: bytes) -> list[Any]:
    content = item["encrypted_content"]
    if not content.startswith(VERSION):
        raise ItemError("This compaction item is of another version of the proxy. Begin a new session.")
    try:
        sealed_text = content[len(VERSION) :] if len(content) <= MOST_SEALED_CHARS else ""
        value = base64.b64decode(sealed_text.encode("ascii"), altchars=b"-_", validate=True)
    except ValueError:  # not ASCII, or not base64
        value = b""
    text = sealing.opened(value, sealing.tenant_key(HANDLE, tenant, key), HANDLE, key)
    if text is None:
        raise ItemError(
            "This compaction item cannot be opened: it was changed, or made for another account or by another proxy. "
            "Begin a new session."
        )
    state: list[Any] = json.loads(text)
    return state


def _texts_of_user(item: Any) -> list[str]:
    found = mapping_or_empty(item)
    content = found.get("content")
    if found.get("role") != "user":
        return []
    parts = [{"text": content}] if isinstance(content, str) else content if isinstance(content, list) else []
    return [WHITE.sub(" ", text_or_empty(mapping_or_empty(part).get("text"))).strip() for part in parts]


def _without(said: set[str], state: Sequence[Any]) -> list[Any]:
    """Return a state without the user's texts that stand in the request already."""
    kept: list[Any] = []
    for item in state:
        found, content = mapping_or_empty(item), mapping_or_empty(item).get("content")
        if found.get("role") != "user" or not isinstance(content, (str, list)):
            kept.append(item)
            continue
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
        left = [part for part, text in zip(parts, _texts_of_user(item), strict=True) if not text or text not in said]
        if left:
            kept.append(item if len(left) == len(parts) else {**found, "content": left})
    return kept
