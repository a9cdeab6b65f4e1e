"""Whatever goes wrong in a look at an answer, the caller gets it, in its order; an overflow is raised as one, and once."""

import asyncio
from datetime import datetime, timezone

import litellm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from litellm.litellm_core_utils.litellm_logging import Logging
from litellm.litellm_core_utils.streaming_handler import CustomStreamWrapper
from litellm.llms.vertex_ai.common_utils import VertexAIError
from litellm.types.llms.openai import ResponsesAPIStreamEvents

from ctx_hooks.litellm_compat.errors import overflow_of
from ctx_hooks.litellm_compat.reclassification import reclassify
from ctx_hooks.litellm_compat.stream_events import ReadAhead, read_ahead

OVERFLOW = "The input token count (9000) exceeds the maximum number of tokens allowed (8000)."
EVENTS = [b'data: {"type": "message_start"}\n\n', b'data: {"type": "content_block_start"}\n\n', b"data: the rest\n\n"]
TOLD = [EVENTS[0], f'data: {{"type": "error", "error": {{"message": "{OVERFLOW}"}}}}\n\n'.encode()]


class Noted:
    """What the seam asks: which errors are overflows, and who is told of one."""

    def __init__(self):
        self.told = []

    def recognise(self, error):
        return overflow_of(error) is not None

    def mode(self, call):
        return "enforce"

    async def note_failure(self, fields, error, *, is_sent=True):
        if is_sent and self.recognise(error):
            self.told.append(fields)
            return True
        return False

    async def is_made_again(self, fields, error):
        return False

    def install(self):
        reclassify(lambda: self)


class Broken(Noted):
    """A plugin with a fault in it."""

    def recognise(self, error):
        raise RuntimeError("a fault in the plugin")


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


async def looked_into(stream):
    unread = []
    await read_ahead(stream, unread)
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


@pytest.fixture
def call(unpatched):  # noqa: ARG001 - a fixture is used as an argument
    """Let a Router of LiteLLM's own make a call through the seam, and return its answer."""

    def through(noted, original_function, **fields):
        async def call(metadata, **_):
            metadata["model_info"] = {"id": "one"}  # as the Router notes the deployment that it has chosen
            return await original_function()

        noted.install()
        router = litellm.Router(model_list=[])
        return router.make_call(call, model="group", litellm_call_id="one", metadata={}, **fields)

    return through


async def answer_of(stream):
    return stream


async def test_a_fault_in_looking_hands_the_stream_on(call):
    stream = await call(Broken(), lambda: answer_of(Slotted(TOLD)))
    assert isinstance(stream, Slotted)
    assert [event async for event in stream] == TOLD


async def test_an_overflow_told_in_the_opening_is_raised_and_its_stream_is_closed(call):
    noted, stream = Noted(), Slotted(TOLD)
    with pytest.raises(litellm.ContextWindowExceededError, match="9000"):
        await call(noted, lambda: answer_of(stream))
    assert stream.closed
    assert [fields["litellm_call_id"] for fields in noted.told] == ["one"]


@pytest.mark.parametrize("is_read", [False, True], ids=["during the look", "behind it"])
async def test_a_caller_that_leaves_ends_the_stream(is_read, call):
    waits, ended = asyncio.Event(), asyncio.Event()

    async def waiting():
        try:
            if is_read:
                yield EVENTS[1]
            waits.set()
            await asyncio.Event().wait()
            yield b""
        finally:
            ended.set()

    async def reading():
        return [event async for event in await call(Noted(), lambda: answer_of(waiting()))]

    asked = asyncio.ensure_future(reading())
    await asyncio.wait_for(waits.wait(), 30)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked
    assert ended.is_set()


@pytest.mark.parametrize("opened_by_router", [True, False])
async def test_an_overflow_of_a_stream_that_is_opened_late_is_told_once(opened_by_router, call):
    """LiteLLM makes these streams without asking the provider: its Router opens those of chat, a reader all others."""

    async def refuse(**_):
        raise VertexAIError(status_code=400, message=OVERFLOW)

    async def make():
        began = {"call_type": "acompletion", "start_time": datetime.now(timezone.utc)}
        logging = Logging("served", [], stream=True, litellm_call_id="one", function_id="one", **began)
        stream = CustomStreamWrapper(None, "served", logging, "gemini", make_call=refuse)
        if opened_by_router:
            await stream.fetch_stream()
        return stream

    noted = Noted()
    with pytest.raises(litellm.ContextWindowExceededError, match="9000"):
        await call(noted, make)
    assert [fields["litellm_call_id"] for fields in noted.told] == ["one"]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_router_refuses_before_it_chooses_is_no_providers_refusal(stream, unpatched):  # noqa: ARG001
    """Its own count and window would be learned as a provider's; what it has noted is the deployment of another attempt."""
    parameters = {"model": "openai/served", "api_key": "k", "mock_response": "never"}
    group = {"model_name": "group", "litellm_params": parameters, "model_info": {"id": "one", "max_input_tokens": 10}}
    router, noted = litellm.Router([group], enable_pre_call_checks=True, num_retries=0), Noted()
    noted.install()
    fields = {"messages": [{"role": "user", "content": "word " * 100}], "metadata": {"model_info": {"id": "before"}}}
    with pytest.raises(litellm.ContextWindowExceededError, match="_pre_call_checks"):
        await router.acompletion("group", stream=stream, **fields)
    assert noted.told == []


async def test_an_answer_that_is_no_stream_is_the_very_object(call):
    whole = {"content": []}
    assert await call(Noted(), lambda: answer_of(whole)) is whole
    assert type(await call(Noted(), lambda: answer_of(Slotted([])))) is ReadAhead


OPENING = [
    b'event: message_start\ndata: {"type": "message_start"}\n\n', {"type": ResponsesAPIStreamEvents.RESPONSE_CREATED},
    {"choices": [{"delta": {"role": "assistant", "content": ""}}]}, b'data: {"type": "mess', b": comment\n\n",
]  # fmt: skip
CONTENT = [b"data: [DONE]\n\n", {"type": "response.output_text.delta"}, None, "text", {"type": "error"}, ValueError("one")]
STEPS = st.lists(st.sampled_from([*OPENING, *CONTENT]), max_size=9)


@given(steps=STEPS, fails=st.booleans())
def test_whatever_a_stream_gives_comes_out_in_its_order(steps, fails):
    steps = [*steps, *([FaultError("at the end")] if fails else [])]

    async def both():
        return await read(Slotted(steps)), await read(await looked_into(Slotted(steps)))

    plain, looked = asyncio.run(both())
    assert list(map(repr, looked)) == list(map(repr, plain))


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
