"""LiteLLM's model map, which has windows and prices by the name of a model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

BUNDLED = "model_prices_and_context_window_backup.json"
"""The map inside LiteLLM's package: with `LITELLM_LOCAL_MODEL_COST_MAP=True`, or without a network, LiteLLM loads it too."""


def model_map() -> Mapping[str, Any]:
    """Return the map of the LiteLLM that is loaded; where none is, as on the command line, the map that it brings.

    Loading LiteLLM takes seconds, the map alone 40 ms.
    """
    loaded: Mapping[str, Any] | None = getattr(sys.modules.get("litellm"), "model_cost", None)
    return _bundled() if loaded is None else loaded


@lru_cache(maxsize=1)
def _bundled() -> Mapping[str, Any]:
    spec = find_spec("litellm")
    for folder in (spec.submodule_search_locations if spec else None) or ():
        path = Path(folder, BUNDLED)
        if path.is_file():
            found: Mapping[str, Any] = orjson.loads(path.read_bytes())
            return found
    import litellm  # noqa: PLC0415 - a version that keeps its map elsewhere

    return litellm.model_cost  # type: ignore[no-any-return]  # untyped here
