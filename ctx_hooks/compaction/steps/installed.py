"""Steps of other packages.

A step is announced by an entry point of the group `ctx_hooks.steps` that names a `Step`; it runs behind `repeats`
and is held to their laws: one that makes a conversation larger is passed over.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from importlib.metadata import entry_points

from ctx_hooks.compaction.steps import Step

logger = logging.getLogger("ctx_hooks")

GROUP = "ctx_hooks.steps"


@lru_cache(maxsize=1)
def extra_steps() -> tuple[Step, ...]:
    """Return the steps that installed packages announce; one that cannot be loaded is logged and left out."""
    steps = []
    for entry in entry_points(group=GROUP):
        try:
            step = entry.load()
        except Exception as error:
            # A broken package beside the plugin must not keep the proxy from starting.
            logger.warning("the step %s cannot be loaded", entry.name, exc_info=error)
            continue
        if isinstance(step, Step):
            steps.append(step)
        else:
            logger.warning("the entry point %s names no ctx_hooks.Step", entry.name)
    return tuple(steps)
