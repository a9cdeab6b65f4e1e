"""What a private name of LiteLLM is: where it is, what the plugin relies on, and whether this LiteLLM has it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, wraps
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ABSENT = object()
WRAPPED = "_ctx_hooks"
"""The attribute of a wrapper of this plugin."""


@dataclass(frozen=True, slots=True)
class PrivateName:
    """A function, class or variable.

    Attributes:
        path: module and name, as `litellm.utils:function_setup`.
        without: what does not work where it is missing.
        takes: the parameters, or a model's fields, that the plugin gives or reads by name.
        is_async: whether it has to be a coroutine function.
        later: the path under which versions have it that lack `path`.
    """

    path: str
    without: str
    takes: tuple[str, ...] = ()
    is_async: bool = False
    later: str = ""

    @property
    def name(self) -> str:
        """The name as Python has it."""
        return self.path.replace(":", ".")

    @property
    def is_proxys(self) -> bool:
        """Whether it belongs to the proxy, which a program that uses LiteLLM's SDK does not load."""
        return self.path.startswith("litellm.proxy")

    @property
    def fault(self) -> str:
        """What is wrong with it in this LiteLLM, "" for nothing."""
        return _fault(self, self._value())

    def find(self) -> Any:
        """Return it, None where this LiteLLM lacks it or has it with another signature."""
        found = self._value()
        return None if _fault(self, found) else found

    def wrap(self, wrapper_of: Callable[[Any], Callable[..., Any]]) -> bool:
        """Put a wrapper in its place, once a process; return whether this LiteLLM has it."""
        original = self.find()
        if original is None or getattr(original, WRAPPED, False):
            return original is not None
        wrapper = wraps(original)(wrapper_of(original))
        setattr(wrapper, WRAPPED, True)
        owner, _, last = self.path.replace(":", ":.").rpartition(".")
        setattr(_value_at(owner.removesuffix(":")), last, wrapper)
        return True

    def _value(self) -> Any:
        found = _value_at(self.path)
        return _value_at(self.later) if found is ABSENT and self.later else found


def missing(keys: Iterable[str]) -> set[str]:
    """Return the keys that no module of this LiteLLM has a word of; reading its source takes about a second."""
    wanted = set(keys)
    spec = find_spec("litellm")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        for path in Path(folder).rglob("*.py"):
            source = path.read_text(encoding="utf-8", errors="replace")
            wanted -= {name for name in wanted if name in source and re.search(rf"\b{name}\b", source)}
            if not wanted:
                break
    return wanted


@lru_cache(maxsize=1)
def installed() -> tuple[int, ...]:
    """Return major and minor of the installed LiteLLM."""
    return tuple(int(part) if part.isdecimal() else 0 for part in version("litellm").split(".")[:2])


def _value_at(path: str) -> Any:
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
    except ImportError:
        return ABSENT
    for part in filter(None, name.split(".")):
        found = getattr(found, part, ABSENT)
    return found


def _fault(wanted: PrivateName, found: Any) -> str:
    if found is ABSENT:
        return f"this LiteLLM has no {wanted.name}"
    if wanted.is_async and not inspect.iscoroutinefunction(found):
        return f"{wanted.name} of this LiteLLM is no coroutine function"
    lacking = sorted(set(wanted.takes) - _parameters(found)) if wanted.takes else []
    return f"{wanted.name} of this LiteLLM takes no {', '.join(lacking)}" if lacking else ""


@lru_cache(maxsize=64)
def _parameters(found: Any) -> frozenset[str]:
    """Return the names of a function's parameters, or of a model's fields."""
    return frozenset(getattr(found, "model_fields", None) or inspect.signature(found).parameters)
