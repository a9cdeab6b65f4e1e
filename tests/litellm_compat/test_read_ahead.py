"""A look into a stream loses nothing of it: every event and error comes in its order, and the stream stays what it is."""

import asyncio
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litellm.types.llms.openai import ResponsesAPIStreamEvents

from ctx_hooks.litellm_compat.reclassification import MOST_READ, ReadAhead, close, read_opening


class Slotted:
    """A stream whose class and attributes cannot be replaced, as those that are compiled or written for speed."""

    __slots__ = ("_hidden_params", "closed", "left")

    def __init__(self, steps):
        self.left = list(steps)
        self._hidden_params = {}
        self.closed = False

    def __aiter__(self):
        return self

    async def __anext__(self):
        if not self.left:
            raise StopAsyncIteration
        step = self.left.pop(0)
        if isinstance(step, FaultError):
            raise step
        return step

    async def aclose(self):
        self.closed = True


class FaultError(Exception):
    """What a step of a stream raises."""


async def generator(steps):
    for step in steps:
        if isinstance(step, FaultError):
            raise step
        yield step


async def looked_into(stream):
    unread = []
    await read_opening(stream, unread)
    return ReadAhead(stream, unread)


async def read(stream):
    """Return all that a stream gives, its error included."""
    found = []
    try:
        async for step in stream:
            found.append(step)  # noqa: PERF401 - what came before an error counts
    except FaultError as error:
        found.append(error)
    return found


OPENING = [
    b'event: message_start\ndata: {"type": "message_start"}\n\n',
    b'data: {"type": "ping"}\n\n',
    {"type": ResponsesAPIStreamEvents.RESPONSE_CREATED},
    {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
    b'data: {"type": "mess',
    b": comment\n\n",
]
CONTENT = [
    b"data: [DONE]\n\n", {"type": "response.output_text.delta"}, None, 7, "text", {"type": "error"}, ValueError("one"),
]  # fmt: skip
STEPS = st.lists(st.sampled_from([*OPENING, *CONTENT]), max_size=9)


@pytest.mark.parametrize("kind", [Slotted, generator])
@given(steps=STEPS, fails=st.booleans())
def test_whatever_a_stream_gives_comes_out_in_its_order(kind, steps, fails):
    steps = [*steps, *([FaultError("at the end")] if fails else [])]

    async def both():
        return await read(kind(steps)), await read(await looked_into(kind(steps)))

    plain, looked = asyncio.run(both())
    assert list(map(repr, looked)) == list(map(repr, plain))


@given(steps=STEPS)
def test_no_more_is_read_than_opens_a_stream(steps):
    unread = []
    asyncio.run(read_opening(Slotted(steps), unread))
    assert len(unread) <= MOST_READ


async def test_a_stream_that_is_over_at_once_stays_so():
    stream = await looked_into(Slotted([]))
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(stream)


async def test_it_is_asked_for_its_class_and_attributes_and_told_them_as_before():
    original = Slotted([b"a"])
    stream = await looked_into(original)
    assert isinstance(stream, Slotted)
    stream._hidden_params = {"model_id": "one"}  # noqa: SLF001 - as LiteLLM does
    assert original._hidden_params == {"model_id": "one"}  # noqa: SLF001
    assert not hasattr(stream, "logging_obj")
    del stream._hidden_params  # noqa: SLF001
    assert not hasattr(original, "_hidden_params")
    await stream.aclose()
    assert original.closed
    assert inspect.isasyncgen(await looked_into(generator([])))


async def test_a_reader_that_is_cancelled_ends_the_stream():
    began, ended = asyncio.Event(), asyncio.Event()

    async def waiting():
        try:
            yield OPENING[0]
            began.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    stream = ReadAhead(waiting(), [b"read before"])
    assert [await anext(stream), await anext(stream)] == [b"read before", OPENING[0]]
    reader = asyncio.ensure_future(anext(stream))
    await began.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert ended.is_set()


async def test_what_cannot_be_closed_is_left():
    class Stubborn(Slotted):
        async def aclose(self):
            raise OSError("the connection is gone")

    await close(Stubborn([]))
    await close(object())
