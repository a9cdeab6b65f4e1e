"""The threads of the process for work that would block the event loop; one that does not stop in time loses its place."""

import asyncio
import threading
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline

T = TypeVar("T")

PLACES, MOST_OF_A_TENANT = 3, 2
"""A slow request leaves one thread for others of its tenant, and a tenant's slow requests leave one for other tenants.
Python runs one thread at a time: each further one would slow the event loop."""
WAITING_FRACTION = 0.5
"""Work that is not begun after this part of its time is refused: what begins too late is not done in time either."""
MOST_ABANDONED = 8
"""With this many abandoned threads, no new one is started: each slows all others."""


class _Queue(NamedTuple):
    tenant: Hashable
    gives_way: bool


@dataclass(slots=True, eq=False)
class _Task:
    """Work for a thread, and the future of its result."""

    queue: _Queue
    work: Callable[[], Any]
    deadline: Deadline
    future: Future[Any] = field(default_factory=Future)

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            self.future.set_result(self.work())
        except BaseException as error:  # noqa: BLE001 - the future raises it in the caller
            self.future.set_exception(error)
            # The error's traceback refers to this frame: without the cycle it is freed at once.
            self = None  # type: ignore[assignment]  # noqa: PLW0642 - as concurrent.futures does

    def refuse(self, error: Exception) -> None:
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(error)


class Workers:
    """Runs work in at most PLACES threads: tenants in turn, and for each tenant first come, first served."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[_Queue, deque[_Task]] = {}
        self._running: list[_Task] = []
        self._ahead: list[_Task] = []  # of the next work that gives way
        self._abandoned = 0

    async def run(self, tenant: Hashable, work: Callable[[], T], deadline: Deadline, *, gives_way: bool = False) -> T:
        """Return the result of a tenant's `work`; if the caller is cancelled, `deadline` stops it.

        Of all work that `gives_way` one is done at a time, and the next after what had begun meanwhile. Raises
        CompressionTimeoutError at the deadline or after too long a wait, RuntimeError if the system starts no thread.
        """
        task, left = _Task(_Queue(tenant, gives_way), work, deadline), deadline.seconds_left
        if left == 0:
            raise CompressionTimeoutError
        result: asyncio.Future[T] = asyncio.wrap_future(task.future)
        with self._lock:
            self._waiting.setdefault(task.queue, deque()).append(task)
            self._fill()
        try:
            await asyncio.wait((result,), timeout=left and left * WAITING_FRACTION)
            if task.future.running():
                await asyncio.wait((result,), timeout=deadline.seconds_left)
            if not task.future.done():
                raise CompressionTimeoutError
            return await result
        finally:
            result.cancel()
            deadline.stop()
            self._leave(task)

    def _fill(self) -> None:
        while len(self._running) < PLACES and (task := self._next()) is not None:
            try:
                threading.Thread(target=self._work_on, args=(task,), name="ctx_hooks", daemon=True).start()
            except RuntimeError as error:  # the system starts no further thread
                self._release(task)
                task.refuse(error)

    def _work_on(self, task: _Task) -> None:
        task.run()
        with self._lock:
            if task in self._running:
                self._release(task)
            else:
                self._abandoned -= 1
            self._fill()

    def _leave(self, task: _Task) -> None:
        with self._lock:
            if task in self._waiting.get(task.queue, ()):
                self._waiting[task.queue].remove(task)
            if not task.future.cancel() and not task.future.done():
                self._abandoned += 1
                self._release(task)
                self._fill()

    def _next(self) -> _Task | None:
        """Return the task of the tenant whose turn it is; the last resort, without a deadline, begins in any case."""
        busy = Counter(task.queue for task in self._running)
        may_begin = [q for q in self._waiting if busy[q] < MOST_OF_A_TENANT and not (q.gives_way and self._ahead)]
        for queue in may_begin:
            tasks = self._waiting.pop(queue)
            while tasks:
                task = tasks.popleft()
                if task.deadline.seconds_left is None or self._abandoned < MOST_ABANDONED:
                    self._running.append(task)
                    if queue.gives_way:
                        self._ahead = [task]
                    if tasks:
                        self._waiting[queue] = tasks  # behind all others
                    return task
                task.refuse(CompressionTimeoutError())
        return None

    def _release(self, task: _Task) -> None:
        self._running.remove(task)
        self._ahead = [*self._running] if task.queue.gives_way else [other for other in self._ahead if other is not task]


pool = Workers()
"""The threads of this process; a second pool would slow the event loop as much again."""
