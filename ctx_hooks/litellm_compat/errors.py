"""The exceptions by which LiteLLM tells a provider's error, and those by which it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ctx_hooks.overflow.recognise import Overflow, recognise_overflow, too_large_for_rate

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Format

LONGEST_TEXT_CHARS = 2_000
"""An error's own words stand at its start; what follows may be the request echoed back."""


def provider_of(error: Exception) -> str | None:
    """Return the provider that LiteLLM names in an exception."""
    provider = getattr(error, "llm_provider", None)
    return provider if isinstance(provider, str) and provider else None


def overflow_of(error: Exception) -> Overflow | None:
    """Return the overflow that an exception tells, a request larger than a whole minute's allowance included.

    What LiteLLM itself has recognised is one whatever its words: the Router falls back on it, to our retries first.
    """
    import litellm  # noqa: PLC0415

    found = recognise_overflow(error, provider=provider_of(error)) or too_large_for_rate(error)
    if found is None and isinstance(error, litellm.ContextWindowExceededError):
        return Overflow("input", "litellm")
    return found


def as_overflow(error: Exception, kwargs: Mapping[str, Any]) -> Exception:
    """Return the ContextWindowExceededError that says what `error` says."""
    import litellm  # noqa: PLC0415

    return litellm.ContextWindowExceededError(  # type: ignore[no-any-return]  # untyped here
        message=str(getattr(error, "message", None) or error),
        model=str(getattr(error, "model", None) or kwargs.get("model") or ""),
        llm_provider=str(getattr(error, "llm_provider", None) or ""),
        response=getattr(error, "response", None),
    )


def text_of(error: Exception) -> str:
    """Return an error's text without the names of LiteLLM's exceptions in front, at most LONGEST_TEXT_CHARS of it."""
    text = str(getattr(error, "message", None) or error)[:LONGEST_TEXT_CHARS]
    while text.startswith("litellm.") and ": " in text:
        text = text.split(": ", 1)[1]
    return text


def not_retried(refusal: str, fields: Mapping[str, Any]) -> Exception:
    """Return the provider's refusal again, for the Router to go on with its next fallback."""
    import litellm  # noqa: PLC0415

    return litellm.ContextWindowExceededError(  # type: ignore[no-any-return]  # untyped here
        message=refusal or "The request exceeds the model's context window and cannot be made smaller.",
        model=str(fields.get("model") or ""),
        llm_provider=str(fields.get("custom_llm_provider") or ""),
    )


def refusal(message: str) -> Exception:
    """Return the exception by which a pre-call hook answers a request with status 400."""
    from fastapi import HTTPException  # noqa: PLC0415 - the proxy's, which is running when this is called

    return HTTPException(400, {"error": message})


def worded_error(error: Exception, message: str, code: str, fmt: Format) -> Exception:
    """Give the error that the proxy is about to answer another text, and return the one for the routes that take it.

    /v1/messages reads the text off the exception itself and ignores what a failure hook returns. The other routes take
    the returned exception; of their own they would answer the status in the place of the code, and Google's routes
    OpenAI's fields.
    """
    from fastapi import HTTPException  # noqa: PLC0415 - the proxy's, which is running when this is called
    from litellm.proxy._types import ProxyException  # noqa: PLC0415

    class ReadableError(ProxyException, HTTPException):  # type: ignore[misc]  # untyped here
        """Both: a failure hook may return the one, and the proxy answers the other in the caller's shape."""

        def to_dict(self) -> dict[str, Any]:
            if fmt == "gemini":
                return {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
            return {"message": message, "type": "invalid_request_error", "param": None, "code": code}

    error.message = message  # type: ignore[attr-defined]
    error.status_code = 400  # type: ignore[attr-defined]
    return ReadableError(message, "invalid_request_error", None, 400)  # type: ignore[arg-type, call-arg]  # ProxyException's order
