"""Where LiteLLM's loggers look: the metadata that goes from an attempt into its log records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.litellm_compat.callers import REQUEST_KEY
from ctx_hooks.litellm_compat.deployments import metadata_of

LOGGED = "spend_logs_metadata"
"""The key that LiteLLM copies into `standard_logging_object["metadata"]` and into its spend logs, with whatever it holds."""


class Figures(dict[str, Any]):
    """Figures that this process wrote: what a caller puts in their place is a plain dictionary."""


def write_figures(fields: Mapping[str, Any], figures: Mapping[str, Any]) -> None:
    """Put the figures of an attempt under `spend_logs_metadata.ctx_hooks` of LiteLLM's own metadata of the attempt.

    That mapping is LiteLLM's, and it is written to: Router, proxy and logger hold the same object, and what they write
    later would be lost with a copy. The caller's `spend_logs_metadata` inside it is not changed but replaced. Where one
    attempt passes twice (before the deployment is chosen, or before a translation) the second pass, which has nothing
    left to do, does not hide what the first one did.
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
