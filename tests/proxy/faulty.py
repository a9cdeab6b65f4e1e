"""A callback of a proxy that breaks one function of the plugin for one request, as the header `x-fault` says."""

import inspect
import json
import pathlib
import sys
import threading

from litellm.integrations.custom_logger import CustomLogger

CALLED = pathlib.Path(__file__).with_name("called.json")


def broken(*_, **__):
    raise RuntimeError("broken on purpose")


async def broken_later(*_, **__):
    raise RuntimeError("broken on purpose")


class Breaking(CustomLogger):
    """Swaps the code of a function: every module that has imported it is affected."""

    def __init__(self):
        super().__init__()
        self.whole = {}
        self.called = {}

    def _function(self, name):
        module, _, path = name.partition(":")
        found = sys.modules[module]
        for part in path.split("."):
            found = inspect.getattr_static(found, part)
        found = getattr(found, "__func__", found)
        found = getattr(found, "fget", None) or getattr(found, "func", None) or found
        return getattr(found, "__wrapped__", found)

    def _note(self, frame, event, _):
        code = frame.f_code
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("ctx_hooks.") and "<" not in code.co_qualname:
            self.called[f"{module}:{code.co_qualname}"] = None

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        wanted = data["proxy_server_request"]["headers"].get("x-fault", "")
        for function, code in self.whole.items():
            function.__code__ = code
        self.whole = {}
        for profile in (sys.setprofile, threading.setprofile):
            profile(self._note if wanted == "record" else None)
        if wanted == "end":
            CALLED.write_text(json.dumps(list(self.called)))
            self.called = {}
        elif wanted not in ("", "record"):
            function = self._function(wanted)
            self.whole[function] = function.__code__
            function.__code__ = (broken_later if inspect.iscoroutinefunction(function) else broken).__code__
        return data


handler = Breaking()
