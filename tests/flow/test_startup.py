"""What the plugin changes in the whole process: nothing without being asked to, and nothing at all when it is off."""

from dataclasses import replace

import pytest
from proxies import printed_by
from told_events import START

from ctx_hooks.flow.startup import attach_sinks, detach_sinks, started
from ctx_hooks.litellm_compat.deployments import names_redis
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.policy.loading import settings_of
from ctx_hooks.policy.settings import Settings
from ctx_hooks.telemetry.listeners import on
from ctx_hooks.telemetry.log import log_event

STATE = """
import litellm
from ctx_hooks.tokens import counter

litellm.callback_settings = {"ctx_hooks": {}}
before = litellm.Router.make_call, litellm.Router.async_function_with_fallbacks_common_utils
import ctx_hooks
ctx_hooks.proxy_handler_instance
after = litellm.Router.make_call, litellm.Router.async_function_with_fallbacks_common_utils
loaded = counter.encoding.cache_info().currsize > 0
print(before != after, loaded)
"""


def state(**environment):
    """Return whether LiteLLM is patched and vocabularies are loaded."""
    printed = printed_by(STATE, **{"CTX_HOOKS_ENABLED": "1", **environment})
    return tuple(word == "True" for word in printed.split()[-2:])


TWO_HANDLERS = """
import asyncio
from types import SimpleNamespace
import litellm
from ctx_hooks.hook import CtxHooks

litellm.callback_settings = {}
first, second = CtxHooks(), CtxHooks()
assert first.flow is second.flow

async def fail(metadata, **fields):
    metadata["model_info"] = {"id": "one"}
    raise litellm.ContextWindowExceededError("too long", "m", "openai")

async def note(fields, error, is_sent):
    print(type(error).__name__)
    return True

async def main():
    CtxHooks.flow = SimpleNamespace(mode=lambda call: "enforce", note_failure=note)
    await litellm.Router(model_list=[]).make_call(fail, model="g", metadata={}, stream=True)

try:
    asyncio.run(main())
except litellm.ContextWindowExceededError:
    pass
"""


def test_handlers_of_a_process_share_one_state():
    """LiteLLM is patched once; what a patch notes reaches the state by which requests are treated now."""
    assert printed_by(TWO_HANDLERS).split()[-1:] == ["ContextWindowExceededError"]


@pytest.mark.parametrize(("environment", "expected"), [
    ({}, (True, True)), ({"CTX_HOOKS_ENABLED": "0"}, (False, False)),
], ids=["on", "off"])  # fmt: skip
def test_disabled_plugin_changes_no_process(environment, expected):
    assert state(**environment) == expected


def test_start_event_names_settings():
    raw = {
        "defaults": {"mode": "observe", "locked": ["mode"]}, "policies": {"careful": {"language": "zh"}},
        "teams": {"red": {"retrieval": True}, "blue": {"reserv": 1}, "green": {}}, "models": {"gpt": "careful"},
    }  # fmt: skip
    event = started(*settings_of(raw), ("litellm.Router.make_call",))
    assert (event.mode, event.addons) == ("observe", ("retrieval",))
    assert (event.mistakes, event.missing) == (1, ("litellm.Router.make_call",))
    assert event.litellm_version.startswith("1.")
    assert event.digest == started(*settings_of(raw), ()).digest != started(*settings_of({}), ()).digest


def test_start_is_one_log_line(caplog):
    caplog.set_level("INFO", "ctx_hooks")
    log_event(replace(START, missing=("litellm.Router.make_call",)))
    (line,) = (record.getMessage() for record in caplog.records)
    assert line == (
        "event=start version=1.2 litellm_version=1.106.2 mode=observe digest=0a1b2c addons=retrieval "
        "missing=litellm.Router.make_call mistakes=0"
    )


@pytest.mark.parametrize(("configuration", "found"), [
    ({}, False), ({"router_settings": {"redis_host": "r"}}, True), ({"litellm_settings": {"cache": True}}, True),
    ({"litellm_settings": {"cache": True, "cache_params": {"type": "local"}}}, False),
])  # fmt: skip
def test_store_is_redis_if_configured(configuration, found):
    assert names_redis(configuration) == found


def test_faults_are_events(tmp_path):
    heard = []
    end = on("fault", heard.append)
    attach_sinks(Settings(events={"path": str(tmp_path / "none")}))
    with failing_open("forwards the request unchanged"):
        raise KeyError
    detach_sinks()
    with failing_open("adds no header"):
        raise KeyError
    end()
    told = [(event.sink, event.consequence) for event in heard]
    assert told == [("event file", ""), ("", "forwards the request unchanged")]
