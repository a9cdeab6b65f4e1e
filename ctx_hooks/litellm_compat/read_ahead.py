"""A stream whose opening has been read to see whether it is an error, and yields it again."""

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ctx_hooks.litellm_compat.stream_events import error_before_content, is_opening

MOST_READ = 6
"""Events that open a stream before its content: message_start and ping, response.created, queued and in_progress."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The error that reading a stream raised, or StopAsyncIteration at its end."""

    error: Exception


class ReadAhead:
    """Yields the events that were already read, then the rest of a stream; its class and attributes are the stream's."""

    __slots__ = ("__weakref__", "_ctx_hooks_stream", "_ctx_hooks_unread")
    _ctx_hooks_stream: Any
    _ctx_hooks_unread: deque[Any]

    def __init__(self, stream: Any, unread: Iterable[Any]) -> None:
        object.__setattr__(self, "_ctx_hooks_stream", stream)
        object.__setattr__(self, "_ctx_hooks_unread", deque(unread))

    @property  # type: ignore[misc]  # isinstance asks for it
    def __class__(self) -> type:
        return type(self._ctx_hooks_stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx_hooks_stream, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx_hooks_stream, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._ctx_hooks_stream, name)

    def __aiter__(self) -> "ReadAhead":
        return self

    async def __anext__(self) -> Any:
        if not self._ctx_hooks_unread:
            return await self._ctx_hooks_stream.__anext__()
        first = self._ctx_hooks_unread.popleft()
        if isinstance(first, Raised):
            raise first.error
        return first


async def read_opening(stream: Any, unread: list[Any]) -> Exception | None:
    """Read a stream into `unread` up to its first content; return the error if one comes before content."""
    while len(unread) < MOST_READ:
        try:
            unread.append(await stream.__anext__())
        except StopAsyncIteration as end:
            unread.append(Raised(end))
            return None
        except Exception as error:  # noqa: BLE001 - raised again later
            unread.append(Raised(error))
            return error
        reported = error_before_content(unread)
        if reported is not None or not is_opening(unread):
            return reported
    return None


async def close(stream: Any) -> None:
    """Close a stream that is not read further, to release its connection and its slot at the deployment."""
    with suppress(Exception):  # the overflow is raised to the Router in any case
        if hasattr(stream, "aclose"):
            await stream.aclose()
