"""LiteLLM's exceptions for provider errors, this plugin's own, and the handling of all others."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from ctx_hooks.formats import GEMINI, Format
from ctx_hooks.litellm_compat.registry import PROXY_ERROR
from ctx_hooks.overflow.quoted import unless_quoted
from ctx_hooks.overflow.recognise import Overflow, names_another, overflow_in, too_large_for_rate, too_many_bytes
from ctx_hooks.overflow.texts import OwnWords, own_words

logger = logging.getLogger("ctx_hooks")
_listeners: list[Callable[[str], object]] = []
LONGEST_TEXT_CHARS = 2_000
"""The error message comes first; an echo of the request may follow."""


class failing_open:  # noqa: N801 - read as a function, as `contextlib.suppress`
    """Log any exception of the block and its consequence, as `forwards the request unchanged`, and continue after it.

    Raises:
        HTTPException: the answer to a request for a window that the operator does not serve.
        ContextWindowExceededError: a retry that is not sent.
    """

    def __init__(self, consequence: str) -> None:
        self._consequence = consequence

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> bool:
        if not isinstance(error, Exception):
            return False
        import litellm  # noqa: PLC0415 - in the proxy it is loaded; `ctx-hooks explain` does without
        from fastapi import HTTPException  # noqa: PLC0415

        if isinstance(error, (HTTPException, litellm.ContextWindowExceededError)):
            return False
        note_fault(self._consequence, error)
        return True


def note_fault(consequence: str, error: Exception) -> None:
    """Log a failure and its consequence, and report it to the listeners."""
    logger.warning("ctx_hooks failed and %s", consequence, exc_info=error)
    for listener in tuple(_listeners):
        with suppress(Exception):  # a listener that fails must not fail what goes on after the first fault
            listener(consequence)


def on_fault(listener: Callable[[str], object]) -> Callable[[], None]:
    """Call `listener`, which raises nothing, with the consequence of each fault; return a function that ends it."""
    _listeners.append(listener)
    return lambda: _listeners.remove(listener)


def overflow_of(error: Exception, request: Any = None) -> Overflow | None:
    """Return the overflow that an exception reports; None for other errors.

    A request larger than the rate limit of a whole minute is one, and one with too many bytes for a server. So is a
    ContextWindowExceededError in other words, unless it names another fault, or quotes. `request` is what the caller has
    sent: its words are not the provider's. With it, call this in a thread.
    """
    import litellm  # noqa: PLC0415

    provider, status = getattr(error, "llm_provider", None), getattr(error, "status_code", None)
    # LiteLLM's exception has no body. The provider's, for which it was raised, has a code.
    is_its = isinstance(error, litellm.ContextWindowExceededError)
    words = own_words(error, getattr(error.__context__, "body", None) if is_its else None)
    its_name = litellm.ContextWindowExceededError.__name__  # a stream has LiteLLM's error as a text
    is_its = is_its or any(its_name in text for text in words.texts)
    words = replace(words, texts=tuple(text.replace(its_name, "BadRequestError") for text in words.texts))
    is_believed = is_its and not (words.quotes or names_another(words))

    def read(own: OwnWords) -> Overflow | None:
        found = overflow_in(own, status=status, provider=provider) or too_large_for_rate(own)
        found = found or too_many_bytes(own, status=status)
        return found or (Overflow("input", "litellm") if is_believed and own == words else None)

    return unless_quoted(read(words), words, read, request)


def text_of(error: Exception) -> str:
    """Return at most LONGEST_TEXT_CHARS of an error's text, without the leading names of LiteLLM's exceptions."""
    text = _message(error)[:LONGEST_TEXT_CHARS]
    while text.startswith("litellm.") and ": " in text:
        text = text.split(": ", 1)[1]
    return text


def as_overflow(cause: Exception | str, fields: Mapping[str, Any]) -> Exception:
    """Return the exception that makes the Router use its next fallback after an attempt with these arguments was refused."""
    import litellm  # noqa: PLC0415

    message = cause if isinstance(cause, str) else _message(cause)
    error: Exception = litellm.ContextWindowExceededError(
        message=message or "The request exceeds the model's context window and cannot be made smaller.",
        model=str(getattr(cause, "model", None) or fields.get("model") or ""),
        llm_provider=str(getattr(cause, "llm_provider", None) or fields.get("custom_llm_provider") or ""),
        response=getattr(cause, "response", None),
    )
    # Not the status of the answer: for 429 and 500 the Router of LiteLLM 1.110 takes the deployment out of its group.
    error.status_code = HTTPStatus.BAD_REQUEST.value  # type: ignore[attr-defined]
    return error


def refusal(message: str) -> Exception:
    """Return the exception with which a pre-call hook answers status 400."""
    from fastapi import HTTPException  # noqa: PLC0415 - the proxy's, which is running when this is called

    return HTTPException(400, {"error": message})


def worded_error(error: Exception, message: str, code: str, fmt: Format) -> Exception:
    """Set text and status of the error that the proxy will answer, and return the exception for the routes that take it.

    `/v1/messages` reads the text from the exception itself. Without the returned one the other routes would send the status
    in place of the code, and Google's routes OpenAI's fields.
    """
    from fastapi import HTTPException  # noqa: PLC0415 - the proxy's, which is running when this is called

    error.message = message  # type: ignore[attr-defined]
    error.status_code = HTTPStatus.BAD_REQUEST.value  # type: ignore[attr-defined]
    proxy_exception: Any = PROXY_ERROR.find()
    if proxy_exception is None:
        return refusal(message)

    class ReadableError(proxy_exception, HTTPException):  # type: ignore[misc]  # untyped here
        """A failure hook may return an HTTPException; the proxy answers a ProxyException in the caller's shape."""

        def to_dict(self) -> dict[str, Any]:
            if fmt == GEMINI:
                return {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}
            return {"message": message, "type": "invalid_request_error", "param": None, "code": code}

    return ReadableError(message, "invalid_request_error", None, 400)  # type: ignore[arg-type, call-arg]  # ProxyException's order


def _message(error: Exception) -> str:
    """Return an exception's message; a refused stream has the body's bytes for one."""
    message = getattr(error, "message", None) or str(error)
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
