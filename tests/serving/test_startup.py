"""What the plugin changes in the whole process: nothing without being asked to, and nothing at all when it is off."""

import pytest
from proxies import printed_by

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

async def note(fields, error):
    print(type(error).__name__)
    return True

async def main():
    CtxHooks.flow = SimpleNamespace(ends=SimpleNamespace(mode=lambda call: "enforce", note_failure=note))
    await litellm.Router(model_list=[]).make_call(fail, model="g", metadata={}, stream=True)

try:
    asyncio.run(main())
except litellm.ContextWindowExceededError:
    pass
"""


def test_all_handlers_of_a_process_share_one_state():
    """LiteLLM is patched once; what a patch notes reaches the state by which requests are treated now."""
    assert printed_by(TWO_HANDLERS).split()[-1:] == ["ContextWindowExceededError"]


@pytest.mark.parametrize(("environment", "expected"), [
    ({}, (True, True)), ({"CTX_HOOKS_ENABLED": "0"}, (False, False)),
], ids=["on", "off"])  # fmt: skip
def test_the_process_is_not_changed_where_the_environment_switches_the_plugin_off(environment, expected):
    assert state(**environment) == expected
