"""What the plugin changes in the whole process: nothing without being asked to, and nothing at all when it is off."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

STATE = """
import gc, sys
import litellm
from ctx_hooks.tokens import vocabulary

litellm.callback_settings = {"ctx_hooks": SETTINGS}
before = litellm.Router.make_call, litellm.Router.async_function_with_fallbacks_common_utils
import ctx_hooks
ctx_hooks.proxy_handler_instance
after = litellm.Router.make_call, litellm.Router.async_function_with_fallbacks_common_utils
loaded = vocabulary.encoding.cache_info().currsize > 0
print(before != after, gc.get_freeze_count() > 0, sys.getswitchinterval() != 0.005, loaded)
"""


def state(settings, **environment):
    """Return whether LiteLLM is patched, objects are frozen, the switch interval is another and vocabularies are loaded."""
    code = STATE.replace("SETTINGS", repr(settings))
    kept = {k: v for k, v in os.environ.items() if k != "CTX_HOOKS_ENABLED"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **environment, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(word == "True" for word in done.stdout.split()[-4:])


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ({}, {}, (True, False, False, True)),
        ({"smooth_event_loop": True}, {}, (True, True, True, True)),
        ({"smooth_event_loop": True}, {"CTX_HOOKS_ENABLED": "0"}, (False, False, False, False)),
        ({"reclassify_errors": False}, {}, (False, False, False, True)),
    ],
    ids=["as it comes", "smooth", "off", "no reclassification"],
)
def test_the_process_is_changed_only_as_far_as_the_settings_say(settings, environment, expected):
    assert state(settings, **environment) == expected
