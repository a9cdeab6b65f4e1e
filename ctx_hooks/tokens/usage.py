"""Read the usage of answers, whatever the provider calls it: the billed tokens, and whether the provider ran a tool.

The usage can also show the input that the client sent instead of the billed one. Nothing here changes an answer in place:
LiteLLM logs and bills the same object.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel

from ctx_hooks.formats.fields import MAPPINGS
from ctx_hooks.tokens.units import ProviderTokens

WHOLE_INPUTS = ("prompt_tokens", "promptTokenCount", "prompt_token_count")
"""Chat's and Google's input includes tokens from the prompt cache; so does `input_tokens` of the Responses API."""
INPUT = "input_tokens"
BESIDE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Anthropic states these beside `input_tokens`. They stay as billed."""
TOTALS = ("total_tokens", "totalTokenCount", "total_token_count")
RECORDS = ("usage", "usageMetadata", "usage_metadata")
HOLDERS = ("message", "response")
"""Fields in which Anthropic's `message_start` and the last event of a Responses stream carry the answer."""
LONGEST_LINE_BYTES = 256_000
"""A longer line of an event stream passes unchanged: it contains an image or a file, and reading it would block the event
loop for more than 3 ms (JSON is read at about 100 MB a second)."""
CALLERS_CALLS = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"}
)
"""Items of a Responses answer that call the caller's tools, whoever defined them."""
SEARCH_NOTES = ("groundingMetadata", "grounding_metadata", "vertex_ai_grounding_metadata", "annotations")
"""Fields that an answer has if the provider searched for it (Google, OpenAI's chat)."""
USAGE_NOTES = ("server_tool_use", "toolUsePromptTokenCount", "web_search_requests", "num_search_queries", "num_sources_used")

CUT_SHORT = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})


class Billed(NamedTuple):
    """The usage that an answer states, in provider tokens.

    Attributes:
        input_tokens: the whole input, cached or not.
        cached_tokens: the part that the provider's prompt cache served.
        written_tokens: the part that was written into the cache at a price of its own (Anthropic).
        output_tokens: the output, reasoning included.
    """

    input_tokens: ProviderTokens
    cached_tokens: ProviderTokens = ProviderTokens(0)
    written_tokens: ProviderTokens = ProviderTokens(0)
    output_tokens: ProviderTokens = ProviderTokens(0)

    @property
    def uncached_tokens(self) -> ProviderTokens:
        """The part of the input that the provider's prompt cache did not serve."""
        return ProviderTokens(self.input_tokens - self.cached_tokens)

    @property
    def uses_cache(self) -> bool:
        """Whether the provider shows a prompt cache."""
        return self.cached_tokens + self.written_tokens > 0


def billed_of(usage: Any) -> Billed | None:
    """Return the figures of a usage record; None if it states no input.

    Anthropic reports cache reads and writes besides `input_tokens`; the figures of OpenAI and LiteLLM include them.

    >>> billed_of({"input_tokens": 20, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 80})
    Billed(input_tokens=1000, cached_tokens=900, written_tokens=80, output_tokens=0)
    >>> billed_of({"prompt_tokens": 1000, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 900}})
    Billed(input_tokens=1000, cached_tokens=900, written_tokens=0, output_tokens=5)
    """
    usage = _held(usage)
    read, written = _count(usage, BESIDE_INPUT[0]), _count(usage, BESIDE_INPUT[1])
    whole = _count(usage, "prompt_tokens")
    if not whole and _field(usage, INPUT) is not None:
        whole = _count(usage, INPUT) + read + written
    if not whole:
        return None
    details = _field(usage, "prompt_tokens_details") or _field(usage, "input_tokens_details")
    cached = min(whole, read or _count(details, "cached_tokens"))
    written = min(whole - cached, written or _count(details, "cache_creation_tokens"))
    output = _count(usage, "completion_tokens") or _count(usage, "output_tokens")
    return Billed(*map(ProviderTokens, (whole, cached, written, output)))


def grown(answer: Any, growth: float) -> Any:
    """Return an answer, or a chunk or event of a stream, with `growth` times its billed input.

    The total grows by as many tokens; the output and the cache figures stay as billed. An answer without input figures is
    returned itself.

    Args:
        answer: a mapping, a pydantic model, or whole lines of server-sent events as bytes.
        growth: the size of the client's request as a multiple of the size of the sent one.

    >>> grown({"usage": {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}}, 2.5)
    {'usage': {'prompt_tokens': 250, 'completion_tokens': 5, 'total_tokens': 255}}
    >>> grown({"usage": {"input_tokens": 20, "cache_read_input_tokens": 80, "output_tokens": 5}}, 2.5)
    {'usage': {'input_tokens': 170, 'cache_read_input_tokens': 80, 'output_tokens': 5}}
    """
    if isinstance(answer, bytes):
        return b"".join(_grown_line(line, growth) for line in answer.splitlines(keepends=True))
    held = {name: _with_grown_records(_field(answer, name), growth) for name in HOLDERS}
    return _with_grown_records(_changed(answer, held), growth)


def unfinished_line(text: bytes) -> bytes:
    """Return the text after the last line break of a piece of an event stream; b"" if it is too long to read."""
    rest = text[text.rfind(b"\n") + 1 :]
    return rest if len(rest) <= LONGEST_LINE_BYTES else b""


def _grown_line(line: bytes, growth: float) -> bytes:
    if not line.startswith(b"data:") or len(line) > LONGEST_LINE_BYTES or not any(n.encode() in line for n in RECORDS):
        return line
    event = json.loads(line[5:])
    changed = grown(event, growth) if isinstance(event, dict) else event
    if changed is event:
        return line
    text = json.dumps(changed, separators=(",", ":")).encode()
    return b"data: " + text + line[len(line.rstrip(b"\r\n")) :]


def _with_grown_records(answer: Any, growth: float) -> Any:
    return _changed(answer, {name: _grown_record(_field(answer, name), growth) for name in RECORDS})


def _grown_record(record: Any, growth: float) -> Any:
    """Return a usage record with a grown input, the same object if it states none."""
    name = next((n for n in WHOLE_INPUTS if _count(record, n)), INPUT)
    billed = _count(record, name) + (sum(_count(record, n) for n in BESIDE_INPUT) if name == INPUT else 0)
    added = round(billed * growth) - billed
    if not added or _field(record, name) is None:
        return record
    totals = {n: _count(record, n) + added for n in TOTALS if _count(record, n)}
    return _changed(record, {name: _count(record, name) + added, **totals})


def _changed(value: Any, fields: Mapping[str, Any]) -> Any:
    """Return a copy of a mapping or model with other values, the same object if nothing differs."""
    new = {name: given for name, given in fields.items() if given is not _field(value, name)}
    if not new or not isinstance(value, (BaseModel, Mapping)):
        return value
    return value.model_copy(update=new) if isinstance(value, BaseModel) else {**value, **new}


def used_hosted_tools(answer: Any) -> bool:
    """Return whether an answer of any route says that the provider ran a tool for it."""
    said = _held(answer)
    usage = _held(said.get("usage") or said.get("usageMetadata"))
    blocks = [_field(block, "type") for name in ("output", "content") for block in _items(said.get(name))]
    choices = [_held(choice) for name in ("choices", "candidates") for choice in _items(said.get(name))]
    noted = [(usage, USAGE_NOTES), (_held(usage.get("prompt_tokens_details")), USAGE_NOTES), (said, SEARCH_NOTES[2:3])]
    noted += [(held, SEARCH_NOTES) for choice in choices for held in (choice, _held(choice.get("message")))]
    found = [held[name] for held, names in noted for name in names if name in held]
    return any(map(_says_something, found)) or any(map(_is_hosted, blocks))


def was_cut_short(answer: Any) -> bool:
    """Return whether a chat, Anthropic or Responses answer says that the end of the allowed or possible output ended it."""
    said = _held(answer)
    reasons = [_field(choice, "finish_reason") for choice in _items(said.get("choices"))]
    reasons += [said.get("stop_reason"), _field(said.get("incomplete_details"), "reason")]
    return not CUT_SHORT.isdisjoint(filter(None, map(str, reasons)))


def _is_hosted(kind: Any) -> bool:
    name = str(getattr(kind, "value", kind) or "")
    return name == "server_tool_use" or (name.endswith("_call") and name not in CALLERS_CALLS)


def _says_something(value: Any) -> bool:
    """Whether a note contains a figure above 0 or any entry."""
    if isinstance(value, Mapping):
        return any(map(_says_something, value.values()))
    if isinstance(value, (int, float, str, list, tuple)):
        return bool(value)
    return value is not None and any(map(_says_something, getattr(value, "__dict__", {}).values()))


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _count(record: Any, name: str) -> int:
    found = _field(record, name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else 0


def _field(value: Any, name: str) -> Any:
    """Return a field of a mapping or model; None if it has none, for which `getattr` would take pydantic 6 µs."""
    return _held(value).get(name)


def _held(value: Any) -> Mapping[str, Any]:
    """Return all fields of a mapping or model, also undeclared ones of a model; none of anything else."""
    if isinstance(value, BaseModel):
        return {**value.model_extra, **vars(value)} if value.model_extra else vars(value)
    return value if isinstance(value, MAPPINGS) else getattr(value, "__dict__", {})
