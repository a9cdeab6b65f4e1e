"""Whatever function of the plugin raises, a request above its window is sent shortened, with one warning at most."""

import inspect
import json
import sys
import threading
from dataclasses import replace

import pytest
from strategies import CALL_TYPES, FIELDS, FORMATS

from ctx_hooks.attempts.request import request_of
from ctx_hooks.attempts.target import Target
from ctx_hooks.flow.deciding import ENGINE
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="code has its qualified name from 3.11 on")
TO = Target("openai/served", "deployment", Window(3_000, "model_info"), Policy(), "call", "ann")
WARNING = "drops the oldest turns"
MOST_SHARE = 0.5
"""Of the session, in characters: the window holds three eighths of its tokens."""
BROKEN = tuple(f"ctx_hooks.{part}." for part in (
    "compaction", "message_rules", "formats", "tokens", "flow.engine", "flow.fitting", "flow.uncounted", "conversation",
    "texts", "telemetry", "attempts.learned", "attempts.observations", "attempts.updates", "store",
))  # fmt: skip
SPARED = (
    "ctx_hooks.compaction.plain_cut",  # the last step of the ladder
    "ctx_hooks.flow.uncounted:decide_by_plain_cut",
    "ctx_hooks.flow.decision",  # the values in which decisions are written
    "ctx_hooks.conversation.model",
    "ctx_hooks.formats.fields",  # reads LiteLLM's own metadata, before anything is decided
    "ctx_hooks.tokens.units",
    "ctx_hooks.tokens.budget",  # the window of a target
    "ctx_hooks.formats.wire_format:WireFormat.<lambda>",  # without these there is no request
    "ctx_hooks.formats.wire_format:WireFormat.counted_values",
    "ctx_hooks.formats.openai_responses:<lambda>",
    "ctx_hooks.formats.gemini:<lambda>",
    *(f"ctx_hooks.formats.gemini:{name}" for name in ("_config_of", "_value_of", "_name_in")),
)


async def sent(fmt, seed, attempt=0):
    """Return which share of an agent session of about 8,000 tokens is sent, first or as a retry, and the headers."""
    content_cache.clear_all()
    flow, session = RequestFlow(), agent_session(fmt, turns=10, result_chars=2_500, seed=seed)
    request = request_of(CALL_TYPES[fmt], {**session, "model": "openai/served"})
    for number in range(attempt):
        await flow.before_attempt(request, replace(TO, window=Window(200_000, "model_info"), attempt=number))
        await flow.failed(TO.request_id, Overflow("input", "x", 3_000, 8_000))
    fields = await flow.before_attempt(request, replace(TO, attempt=attempt))
    whole, shortened = (len(json.dumps(told[FIELDS[fmt]])) for told in (session, fields))
    return shortened / whole, str(flow.running.of(TO.request_id).headers)


async def called_for(fmt):
    """Return the functions that take part in a request."""
    found = {}

    def note(frame, event, _):
        module = frame.f_globals.get("__name__", "")
        if event == "call" and f"{module}.".startswith(BROKEN):
            found[f"{module}:{frame.f_code.co_qualname}"] = None

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        await sent(fmt, seed=1)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [name for name in found if not name.startswith(SPARED) and "__" not in name and "<" not in name]


def broken(*_, **__):
    raise RuntimeError("broken on purpose")


async def broken_later(*_, **__):
    raise RuntimeError("broken on purpose")


def break_function(monkeypatch, name):
    """Swap the code of a function, for every module that has imported it."""
    module, _, path = name.partition(":")
    found = sys.modules[module]
    for part in path.split("."):
        found = inspect.getattr_static(found, part)
    found = getattr(found, "__func__", found)
    found = getattr(found, "fget", None) or getattr(found, "func", None) or found
    function = getattr(found, "__wrapped__", found)
    code = (broken_later if inspect.iscoroutinefunction(function) else broken).__code__
    monkeypatch.setattr(function, "__code__", code)


CASES = [(fmt, attempt) for fmt in FORMATS for attempt in (0, 1)]
"""Each breaks functions of its own: all of them together every function."""


@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda n: f"{CASES[n][0]}-{CASES[n][1]}")
async def test_each_fault_ends_in_shortened_request(case, caplog):
    fmt, attempt = CASES[case]
    called, failures, told = await called_for(fmt), [], 0
    names = called[case :: len(CASES)]
    for number, name in enumerate(names):
        caplog.clear()
        with pytest.MonkeyPatch.context() as patch:
            break_function(patch, name)
            try:
                share, headers = await sent(fmt, seed=10 + number, attempt=attempt)
            except Exception as error:  # noqa: BLE001 - each is a failure of the law
                share, headers = 1, str(error)
        warnings = caplog.text.count(WARNING)
        told += "failed: RuntimeError" in headers
        if share > MOST_SHARE or warnings > 1 + attempt:
            failures.append((name, share, warnings, headers))
    assert failures == [], "\n".join(map(str, failures))
    assert len(called) > 200
    assert told > len(names) / 2, "the headers say so"


@pytest.mark.parametrize("attempt", [0, 1])
async def test_engine_that_cannot_be_imported_ends_so_too(attempt, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, ENGINE, None)
    share, headers = await sent("openai-chat", seed=1, attempt=attempt)
    assert share <= MOST_SHARE
    assert "failed: ModuleNotFoundError" in headers
    assert WARNING in caplog.text
