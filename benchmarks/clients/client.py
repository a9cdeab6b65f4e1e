"""What a client is: how it is installed, how it is started, and where it sends its requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Registry = Literal["npm", "pip"]
Provider = Literal["openai", "anthropic", "gemini"]


@dataclass(frozen=True, slots=True)
class Client:
    """A client or SDK that holds a session with the proxy.

    `command`, and the values of `environment` and `files`, are templates of `string.Template`: `$url` is the proxy's
    address, `$key` its key, `$model` the model group to ask for, `$prompt` what the user says, `$end` what asks a client
    that calls no tools to end, `$home` and `$work` the session's home and working folder, `$programs` the folder of the
    programs that use an SDK, `$installed` that of the client's packages. `files` are written below `$home`.

    Attributes:
        name: How the table calls it.
        registry: Where it is installed from.
        packages: What is installed; the version of the first is the client's.
        route: The route of the proxy that it asks.
        provider: What its deployment speaks.
        command: What is run in `$work`.
        environment: Variables beside HOME, PATH, LANG.
        files: Its configuration, by path below `$home`.
        calls_tools: Whether the model reads the files by tool calls; else the client puts them in front of the model itself.

    """

    name: str
    registry: Registry
    packages: tuple[str, ...]
    route: str
    provider: Provider
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    calls_tools: bool = True

    @property
    def key(self) -> str:
        """Return the name as it stands in paths and model names."""
        return path_name(self.name)


def path_name(text: str) -> str:
    """Return the letters and figures of a text in lower case, joined by dashes."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
