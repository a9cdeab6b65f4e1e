"""One request of a history, whatever recorded it, and the rows of a file that it is read from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from ctx_hooks.request.request import Request
from ctx_hooks.tokens.usage import Billed


class Row(NamedTuple):
    """A JSON object of a file, and the line that it ends in."""

    line: int
    fields: Mapping[str, Any]


class LeftOut(NamedTuple):
    """A row without a request to replay, and the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request of a history.

    Attributes:
        request: its format and fields.
        session: its session's name in the history; "" if there is none.
        model: the requested model, with LiteLLM's prefix of the provider if the history has it.
        group: the model group of the proxy; "" if there was none.
        team_names: id and alias of the team that sent it.
        key_names: the alias of the virtual key.
        model_info: prices and window of the deployment, if the history states them.
        billed: the provider's usage; None if it is not recorded.
        dollars: LiteLLM's bill; None if it is not recorded.
        was_refused: whether the provider refused it as too long.
        started: when it was sent, as the history writes it; in one file these sort by time.
    """

    request: Request
    session: str = ""
    model: str = ""
    group: str = ""
    team_names: tuple[str, ...] = ()
    key_names: tuple[str, ...] = ()
    model_info: Mapping[str, Any] = field(default_factory=dict)
    billed: Billed | None = None
    dollars: float | None = None
    was_refused: bool = False
    started: str = ""


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text; raises ValueError, or RecursionError if it is nested too deeply."""
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)  # takes lone surrogates and huge integers, which orjson refuses


def json_of(value: Any) -> Any:
    """Return a value that may be given as its JSON text, as columns of a database are; a text that is no JSON unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return loads(value)
    except (ValueError, RecursionError):
        return value
