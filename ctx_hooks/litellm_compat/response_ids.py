"""The provider's own id of a stored response, whichever form of it LiteLLM shows.

LiteLLM writes its deployment into the id, and the proxy encrypts that for the client. Hooks see either form.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ctx_hooks.litellm_compat.registry import DECRYPTED_ID, PROVIDER_ID


def stored_history_of(fields: Mapping[str, Any]) -> str:
    """Return the provider's id of the response that a request continues, "" where it continues none."""
    return _provider_id(fields.get("previous_response_id"))


def stored_response_of(answer: Any) -> str:
    """Return the provider's id of an answer of the Responses API that a later request can continue, "" for any other."""
    fields = answer if isinstance(answer, Mapping) else getattr(answer, "__dict__", {})
    kept = fields.get("object") == "response" and fields.get("store") is not False
    return _provider_id(fields.get("id")) if kept else ""


def _provider_id(value: object) -> str:
    if not isinstance(value, str):
        return ""
    decode = PROVIDER_ID.find()
    try:
        return str(decode(_decrypted(value))) if decode is not None else value
    except Exception:  # noqa: BLE001 - an id in a form of another LiteLLM is an id that nothing is known of
        return value


def _decrypted(response_id: str) -> str:
    """Return the id that the proxy has encrypted; as it is where it was not, or without a key."""
    security = _security()
    return str(DECRYPTED_ID.find()(security, response_id)[0]) if security is not None else response_id


@lru_cache(maxsize=1)
def _security() -> Any:
    if DECRYPTED_ID.find() is None:
        return None
    from litellm.proxy.hooks.responses_id_security import ResponsesIDSecurity  # noqa: PLC0415 - LiteLLM has it

    return ResponsesIDSecurity()
