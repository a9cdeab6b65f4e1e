"""The optional parts take part in requests besides the core, which knows neither. A policy that needs one loads it."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple, Protocol, TypeAlias

from ctx_hooks.attempts.attempt import Attempt, Limits
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.flow.decision import Decided
from ctx_hooks.flow.running import RequestState, Running
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.tokens.usage import Billed

logger = logging.getLogger("ctx_hooks")

OWN = {
    "retrieval": "ctx_hooks.addons.retrieval.addon:Retrieval",
    "compaction_api": "ctx_hooks.addons.compaction_api.addon:CompactionApi",
    "summaries": "ctx_hooks.addons.summaries.addon:ModelSummaries",
}
"""The optional parts of the package, by name: a module, and what makes an `Addon` from a `Core`."""
LOAD_SECONDS = 30.0
"""An import takes a tenth of a second, but some seconds on a busy machine with a slow disk."""
PAUSE_SECONDS = 60.0
"""The pause before a failed add-on is loaded again: a busy machine may have imported it by then."""


class Undecided(NamedTuple):
    """An attempt before its decision; an add-on may pass on a changed one.

    `fits_by_size` says whether the request fits by its size, so that the engine counts and removes nothing.
    """

    request: Request
    to: Target
    limits: Limits
    fits_by_size: bool


Decide: TypeAlias = "Callable[[Undecided], Awaitable[Decided]]"


@dataclass(frozen=True, slots=True)
class Core:
    """The objects that an add-on may use.

    An add-on keeps its own state of a request in `RequestState.notes`. `fitted_before_choice` fits a request if the Router
    would refuse it before it chooses a deployment.
    """

    store: SharedStore
    running: Running
    fitted_before_choice: Callable[[Request], Awaitable[dict[str, Any]]]


class Addon(Protocol):
    """Steps around requests. A subclass overrides the methods that it needs. All run on the event loop.

    A failure is logged and costs only the add-on's own effect. The client gets only the errors that `begun` (HTTPException),
    `called` and `shown` raise.
    """

    async def begun(self, request: Request, to: Target) -> Request:  # noqa: ARG002 - for subclasses
        """Return a request as the Router gets it, before it chooses a deployment."""
        return request

    async def called(self, fields: Mapping[str, Any], call: Awaitable[Any]) -> Any:  # noqa: ARG002 - for subclasses
        """Return the answer or the stream with which the Router's `call` of a request ends."""
        return await call

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Return the decision about an attempt: `decide` makes it from the attempt that the add-on passes on.

        Raises:
            MalformedConversationError: the request has no conversation.
        """
        return await decide(undecided)

    async def shown(self, fields: Mapping[str, Any], answer: Any, *, streamed: bool) -> Any:  # noqa: ARG002 - for subclasses
        """Return an answer as the client sees it: a stream for a stream."""
        return answer

    def ended(self, attempt: Attempt, billed: Billed | None) -> None:
        """Note that an attempt was answered or has failed: `billed` is None after a failure or without usage."""


class Addons:
    """The add-ons of a process. Used on the event loop only."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._loaded: dict[str, Addon] = {}
        self._paused_until: dict[str, float] = {}

    async def named(self, policy: Policy) -> dict[str, Addon]:
        """Return the add-ons that a policy names, outermost first; a failed import is logged and left out."""
        for name in policy.addon_names:
            if name not in self._loaded and time.monotonic() >= self._paused_until.get(name, 0.0):
                await self._load(name)
        return {name: self._loaded[name] for name in policy.addon_names if name in self._loaded}

    async def begun(self, request: Request, to: Target) -> Request:
        """Return a request as its policy's add-ons pass it on; raises their refusals."""
        for name, addon in (await self.named(to.policy)).items():
            with failing_open(f"goes on without the add-on {name}"):
                request = await addon.begun(request, to)
        return request

    async def called(self, state: RequestState, fields: Mapping[str, Any], call: Awaitable[Any]) -> Any:
        """Return the end of a request's call of the Router as its add-ons pass it on; raises its error."""
        for addon in self._of(state.addons):
            call = addon.called(fields, call)
        return await call

    async def decided(self, undecided: Undecided, decide: Decide) -> Decided:
        """Return the decision about an attempt, made through its policy's add-ons; an add-on's failure is logged once.

        Unless the policy only observes, they will see the answer. Raises what `decide` raises without the add-ons.
        """
        policy = undecided.to.policy
        addons = await self.named(policy)
        if addons and policy.mode == "enforce":
            self._core.running.open(undecided.to.request_id).addons |= addons.keys()
        is_bare = False

        async def through(left: tuple[tuple[str, Addon], ...], undecided: Undecided) -> Decided:
            nonlocal is_bare
            if not left or is_bare:
                return await decide(undecided)
            (name, addon), *inner = left
            try:
                return await addon.decided(undecided, partial(through, tuple(inner)))
            except MalformedConversationError:
                raise
            except Exception as error:
                if is_bare:
                    raise
                is_bare = True
                logger.warning("ctx_hooks failed and decides without the add-on %s", name, exc_info=error)
                return await decide(undecided)

        return await through(tuple(addons.items()), undecided)

    async def whole(self, state: RequestState, fields: Mapping[str, Any], answer: Any) -> Any:
        """Return an answer as the client sees it; raises an add-on's errors."""
        for addon in self._of(state.addons):
            answer = await addon.shown(fields, answer, streamed=False)
        return answer

    async def streamed(
        self, state: RequestState, fields: Mapping[str, Any], stream: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Yield the chunks of a stream as the client sees them.

        In mid-stream the Router may change to a deployment whose policy names further add-ons.
        """
        names: frozenset[str] = frozenset()
        while True:
            for addon in self._of(state.addons - names):
                stream = await addon.shown(fields, stream, streamed=True)
            names = state.addons
            try:
                chunk = await anext(stream)
            except StopAsyncIteration:
                return
            if state.addons == names:
                yield chunk
            else:
                stream = _begun_with(chunk, stream)

    def ended(self, attempt: Attempt, billed: Billed | None) -> None:
        """Report the end of an attempt to its add-ons."""
        for name in self._loaded.keys() & {*attempt.to.policy.addon_names}:
            with failing_open(f"goes on without the add-on {name}"):
                self._loaded[name].ended(attempt, billed)

    def _of(self, names: frozenset[str]) -> list[Addon]:
        return [addon for name, addon in self._loaded.items() if name in names]

    async def _load(self, name: str) -> None:
        """Import an add-on in a thread: its packages may block the event loop for a tenth of a second."""
        module, _, attribute = OWN[name].partition(":")
        try:
            found = await pool.run(name, partial(import_module, module), Deadline(LOAD_SECONDS))
            if name not in self._loaded:  # several requests may wait for one import
                self._loaded[name] = getattr(found, attribute)(self._core)
        except Exception as error:
            # A package that an optional part needs may be missing: that must not fail a request.
            self._paused_until[name] = time.monotonic() + PAUSE_SECONDS
            logger.warning("the add-on %s cannot be loaded", name, exc_info=error)


async def _begun_with(chunk: Any, stream: AsyncIterator[Any]) -> AsyncIterator[Any]:
    yield chunk
    async for further in stream:
        yield further
