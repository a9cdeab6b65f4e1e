"""Threads for work that would block the event loop. At the deadline the caller stops waiting and `Deadline.stop` is called.

The time of the work starts when a thread takes it. A thread cannot be ended from outside. If one does not stop, it is
abandoned and another replaces it. All threads are daemons, so they do not keep the process from ending.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline

T = TypeVar("T")

PLACES = 2
"""A slow request leaves one thread for the others. Python runs one thread at a time: each further one would slow the event
loop."""
MOST_ABANDONED = 8
"""With this many abandoned threads, no new one is started: each slows all others."""


@dataclass(slots=True, eq=False)
class _Task:
    """Work for a thread, and the future of its result."""

    work: Callable[[], Any]
    deadline: Deadline
    future: Future[Any] = field(default_factory=Future)
    is_abandoned: bool = False

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        self.deadline.start()
        try:
            result = self.work()
        except BaseException as error:  # noqa: BLE001 - the future raises it in the caller
            self.future.set_exception(error)
            # The error's traceback refers to this frame: without the cycle it is freed at once.
            self = None  # type: ignore[assignment]  # noqa: PLW0642 - as concurrent.futures does
        else:
            self.future.set_result(result)

    def refuse(self, error: Exception) -> None:
        """Raise an error in the caller, unless nobody waits."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Workers:
    """Runs work in at most PLACES threads, first come, first served.

    >>> asyncio.run(Workers().run(lambda: 6 * 7, Deadline(seconds=5)))
    42
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[_Task] = deque()
        self._running = 0
        self._abandoned = 0

    async def run(self, work: Callable[[], T], deadline: Deadline) -> T:
        """Return the result of `work`. If the caller is cancelled, `deadline` stops the work.

        Raises:
            CompressionTimeoutError: The deadline is reached, whether or not the work stops; or too many earlier threads have
                not stopped.
            RuntimeError: The system starts no further thread.
        """
        task = _Task(work, deadline)
        result: asyncio.Future[T] = asyncio.wrap_future(task.future)
        with self._lock:
            self._waiting.append(task)
            self._fill()
        try:
            while not result.done():
                # Until the work starts, its whole time is left, so this wakes up no later than the deadline.
                if deadline.seconds_left == 0:
                    raise CompressionTimeoutError
                await asyncio.wait((result,), timeout=deadline.seconds_left)
            return result.result()
        finally:
            result.cancel()
            deadline.stop()
            self._leave(task)

    def _fill(self) -> None:
        """Start a thread for each free place while work waits; the caller has the lock."""
        while self._running < PLACES and (task := self._next()) is not None:
            try:
                threading.Thread(target=self._work_on, args=(task,), name="ctx_hooks", daemon=True).start()
            except RuntimeError as error:  # the system starts no further thread
                if self._running:
                    self._waiting.appendleft(task)
                    return
                task.refuse(error)
            else:
                self._running += 1

    def _work_on(self, task: _Task | None) -> None:
        while task is not None:
            task.run()
            with self._lock:
                if task.is_abandoned:
                    self._abandoned -= 1
                    return
                task = self._next()
                self._running -= task is None

    def _leave(self, task: _Task) -> None:
        """Release the place of a task whose caller has left; a running task is abandoned."""
        with self._lock:
            if task in self._waiting:
                self._waiting.remove(task)
            if not task.future.cancel() and not task.future.done():
                task.is_abandoned = True
                self._abandoned += 1
                self._running -= 1
                self._fill()

    def _next(self) -> _Task | None:
        """Return the next waiting task, None if there is none; the caller has the lock.

        Work with a deadline is refused while too many threads have not stopped; the last resort has no deadline.
        """
        while self._waiting:
            task = self._waiting.popleft()
            if task.deadline.seconds_left is None or self._abandoned < MOST_ABANDONED:
                return task
            task.refuse(CompressionTimeoutError())
        return None
