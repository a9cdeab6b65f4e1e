"""LiteLLM's log data of a request: its metadata, where the plugin writes for loggers and spend log, and its answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.call import REQUEST_KEY, Call, own_metadata
from ctx_hooks.litellm_compat.registry import NOTES, USAGE
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.tokens.usage import Billed, billed_of, fields_of, used_hosted_tools, was_cut_short

COST = "response_cost"
LOGGED = "spend_logs_metadata"
"""LiteLLM copies the value of this key into `standard_logging_object["metadata"]` and into its spend logs."""
SAVINGS = "compression_savings"
"""LiteLLM's dashboard sums up the `tokens_saved` of this key by day, at the plain input price."""


def without_request_key(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request's data with REQUEST_KEY moved from the provider's `metadata` to LiteLLM's, changed in place."""
    metadata, own = data.get("metadata"), data.get("litellm_metadata")
    if not (isinstance(metadata, Mapping) and isinstance(own, dict) and own and REQUEST_KEY in metadata):
        return dict(data)
    own[REQUEST_KEY] = metadata[REQUEST_KEY]
    return {**data, "metadata": {k: v for k, v in metadata.items() if k != REQUEST_KEY}}


class Figures(dict[str, Any]):
    """Figures that this process wrote. A caller can only put a plain dictionary in their place."""


def write_figures(call: Call, figures: Mapping[str, Any]) -> None:
    """Put the figures of an attempt under `spend_logs_metadata.ctx_hooks` of LiteLLM's own metadata, in place.

    One attempt may pass twice, before the deployment is chosen or before a translation: a second pass that fits does not
    overwrite the figures of the first.
    """
    metadata = call.metadata
    if not isinstance(metadata, dict):
        return
    logged = mapping_or_empty(metadata.get(LOGGED))
    before = logged.get(REQUEST_KEY)
    seen = isinstance(before, Figures) and before.get("attempt") == figures["attempt"]
    if not (seen and figures["decision"] == "fits"):
        metadata[LOGGED] = {**logged, REQUEST_KEY: Figures(figures)}


def write_notes(call: Call, figures: Mapping[str, Any], savings: Mapping[str, Any] | None, tags: Sequence[str]) -> None:
    """Add figures, `compression_savings` and tags to LiteLLM's record of an answered request, in place.

    Its loggers read the payload next, its spend log the metadata, which on Google's routes is not the mapping that an
    attempt's figures were written to. Another compressor's savings stay.
    """
    recorded, payload = mapping_or_empty(call.fields.get("litellm_params")), call.fields.get("standard_logging_object")
    metadata = recorded.get("litellm_metadata") or recorded.get("metadata") or {}
    holders = [metadata]
    if isinstance(payload, dict):
        holders.append(payload["metadata"])
        payload["request_tags"] = list(dict.fromkeys([*(payload.get("request_tags") or ()), *tags]))
    noted = mapping_or_empty(own_metadata(recorded).get(LOGGED))
    known = noted.get(REQUEST_KEY)
    value = {**noted, REQUEST_KEY: Figures({**(known if isinstance(known, Figures) else {}), **figures})}
    for holder in holders:
        holder[LOGGED] = value
    if not isinstance(metadata.get(SAVINGS) or Figures(), Figures):
        if savings is not None:
            warn_once(f"another compressor writes {SAVINGS} into LiteLLM's spend log too: what ctx_hooks saves is not added")
    elif savings is not None:
        metadata[SAVINGS] = Figures(savings)
    else:
        metadata.pop(SAVINGS, None)


class Answer(NamedTuple):
    """What LiteLLM's record of a call says about its answer; `billed` is None without a usage, and from LiteLLM's cache.

    `used_hosted_tools`: the bill includes text that a tool of the provider has read. `cut_short`: no more output was
    allowed, or possible.
    """

    billed: Billed | None
    used_hosted_tools: bool = False
    cut_short: bool = False


def answer_of(logged: Mapping[str, Any], result: Any) -> Answer | None:
    """Return the answer that is logged, None while its stream has not ended: the logging hook gets its parts too."""
    answer = logged.get("async_complete_streaming_response")
    if answer is None and logged.get("stream") is not True:
        answer = result
    if answer is None:
        return None
    return Answer(
        billed=None if logged.get("cache_hit") is True else billed_of(fields_of(answer).get("usage")),
        used_hosted_tools=used_hosted_tools(answer),
        cut_short=was_cut_short(answer),
    )


def notes_on(answer: Any) -> Mapping[str, Any]:
    """Return LiteLLM's notes on an answer, for its headers and logs; an empty mapping if it has none."""
    return mapping_or_empty(answer.get(NOTES.last) if isinstance(answer, dict) else getattr(answer, NOTES.last, None))


def estimate_usage(estimate: Callable[[Mapping[str, Any]], int | None]) -> bool:
    """Let LiteLLM ask `estimate` for the input of a stream that states no usage; return whether it can.

    From LiteLLM's log data of a call, it returns the provider tokens of the sent request, None to leave that to LiteLLM,
    which would count the caller's messages.
    """

    def wrapper_of(original: Any) -> Any:
        def build(*args: Any, **kwargs: Any) -> Any:
            logged: Any = getattr(kwargs.get("logging_obj"), "model_call_details", None)

            def count_prompt_tokens() -> int:
                import litellm  # noqa: PLC0415 - the proxy has loaded it

                found = estimate(logged)
                return litellm.token_counter(logged["model"], messages=kwargs.get("messages")) if found is None else found

            if isinstance(logged, Mapping) and kwargs.get("count_prompt_tokens") is None:
                kwargs["count_prompt_tokens"] = count_prompt_tokens
            return original(*args, **kwargs)

        return build

    return USAGE.wrap(wrapper_of)
