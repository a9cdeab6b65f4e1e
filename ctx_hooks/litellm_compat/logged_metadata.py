"""The metadata of an attempt that LiteLLM's loggers read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.litellm_compat.callers import REQUEST_KEY
from ctx_hooks.litellm_compat.deployments import metadata_of

LOGGED = "spend_logs_metadata"
"""LiteLLM copies the value of this key into `standard_logging_object["metadata"]` and into its spend logs."""


class Figures(dict[str, Any]):
    """Figures that this process wrote. A caller can only put a plain dictionary in their place."""


def write_figures(fields: Mapping[str, Any], figures: Mapping[str, Any]) -> None:
    """Put the figures of an attempt under `spend_logs_metadata.ctx_hooks` of LiteLLM's own metadata of the attempt.

    The mapping is LiteLLM's and is changed in place: Router, proxy and logger share it, and later writes would miss a copy.
    The caller's `spend_logs_metadata` inside it is replaced, not changed. One attempt may pass twice, before the deployment
    is chosen or before a translation: an untouched second pass does not overwrite the figures of the first.

    Args:
        fields: The arguments of a hook.
        figures: Figures of the attempt, with `attempt` and `decision`.

    """
    metadata = metadata_of(fields)
    if not isinstance(metadata, dict):
        return
    found = metadata.get(LOGGED)
    logged = found if isinstance(found, Mapping) else {}
    before = logged.get(REQUEST_KEY)
    seen = isinstance(before, Figures) and before.get("attempt") == figures["attempt"]
    if not (seen and figures["decision"] == "untouched"):
        metadata[LOGGED] = {**logged, REQUEST_KEY: Figures(figures)}
