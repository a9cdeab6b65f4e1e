"""The metadata of an attempt that LiteLLM's loggers and its spend log read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctx_hooks.litellm_compat.callers import REQUEST_KEY
from ctx_hooks.litellm_compat.deployments import metadata_of
from ctx_hooks.litellm_compat.registry import LOGGED_METADATA
from ctx_hooks.runtime.warnings import warn_once

LOGGED = "spend_logs_metadata"
"""LiteLLM copies the value of this key into `standard_logging_object["metadata"]` and into its spend logs."""
SAVINGS = "compression_savings"
"""The value of this key goes into the metadata of the spend log; `proxy/spend_tracking/compression_savings.py` reads its
`tokens_saved`, and `compute_savings_spend` of `savings.py` beside it gives them the plain input price. The sums by day of
both are what LiteLLM's dashboard shows as saved by compression."""


class Figures(dict[str, Any]):
    """Figures that this process wrote. A caller can only put a plain dictionary in their place."""


def write_figures(fields: Mapping[str, Any], figures: Mapping[str, Any]) -> None:
    """Put the figures of an attempt under `spend_logs_metadata.ctx_hooks` of LiteLLM's own metadata of the attempt.

    The mapping is LiteLLM's and is changed in place: Router, proxy and logger share it, and later writes would miss a copy.
    The caller's `spend_logs_metadata` inside it is replaced, not changed. One attempt may pass twice, before the deployment
    is chosen or before a translation: a second pass that fits does not overwrite the figures of the first.

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
    if not (seen and figures["decision"] == "fits"):
        metadata[LOGGED] = {**logged, REQUEST_KEY: Figures(figures)}


def write_notes(
    logged: Mapping[str, Any], figures: Mapping[str, Any], savings: Mapping[str, Any] | None, tags: Sequence[str]
) -> None:
    """Put what is known of an answered request where LiteLLM's loggers and its spend log read it, before they do.

    The payload of the loggers is made by then, so it is changed beside the metadata that it was made of. Of both,
    `get_logging_payload` of `proxy/spend_tracking/spend_tracking_utils.py` makes the spend log: the payload's tags, and the
    metadata, which on Google's routes is not the mapping that an attempt's figures were written to.

    Args:
        logged: LiteLLM's record of the call; its metadata and payload are changed in place.
        figures: What to add to the figures of the attempt.
        savings: LiteLLM's `compression_savings`; None where nothing was saved. Another compressor's stay.
        tags: What to add to the request's tags.

    """
    find_metadata = LOGGED_METADATA.find()
    if find_metadata is None:
        return
    metadata, payload = find_metadata(logged), logged.get("standard_logging_object")
    holders = [metadata]
    if isinstance(payload, dict):
        holders.append(payload["metadata"])
        payload["request_tags"] = list(dict.fromkeys([*(payload.get("request_tags") or ()), *tags]))
    before = metadata_of(logged.get("litellm_params") or {}).get(LOGGED)
    told = before if isinstance(before, Mapping) else {}
    known = told.get(REQUEST_KEY)
    value = {**told, REQUEST_KEY: Figures({**(known if isinstance(known, Figures) else {}), **figures})}
    for holder in holders:
        holder[LOGGED] = value
    _write_savings(metadata, savings)


def _write_savings(metadata: dict[str, Any], savings: Mapping[str, Any] | None) -> None:
    """Write LiteLLM's `compression_savings`, in place of those of an earlier call of the same request."""
    before = metadata.get(SAVINGS)
    if before and not isinstance(before, Figures):
        if savings is not None:
            warn_once(f"another compressor writes {SAVINGS} into LiteLLM's spend log too: what ctx_hooks saves is not added")
    elif savings is not None:
        metadata[SAVINGS] = Figures(savings)
    else:
        metadata.pop(SAVINGS, None)
