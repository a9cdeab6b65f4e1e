"""`ctx-hooks check --probe`: ask each server for its window, compare it with the stated one, and write it if asked to.

Sources: `max_model_len` of a model's card in `/v1/models` (vLLM and SGLang, `entrypoints/openai/protocol.py`),
`default_generation_settings.n_ctx` of `/props` (llama.cpp, `tools/server/README.md`), `context_length` of a loaded model in
`/api/ps` and `num_ctx` among the parameters of `/api/show` (Ollama, `docs/api.md`), `max_input_tokens` of `/info` (TGI).
"""

from __future__ import annotations

import difflib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ctx_hooks.cli.files import read_text, yaml_of
from ctx_hooks.cli.terminal import CommandError, as_json, confirmed, console, counted, print_text, table
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.deployments import known_window_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import httpx

    from ctx_hooks.cli.configuration import Configuration, Listed

SECONDS = 5.0
"""A server that is up answers these routes at once."""
NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)
VARIABLE = "os.environ/"
"""How LiteLLM's configuration names a variable of the environment."""


@dataclass(frozen=True, slots=True)
class Probed:
    """The answer of a deployment's server: the window in tokens, None without one, and where it was found or why not."""

    path: str
    model_group: str
    stated_tokens: int | None
    window_tokens: int | None
    said_by: str


def probed(found: Configuration) -> list[Probed]:
    """Return the answer of each server that the deployments of a configuration name by an address."""
    import httpx  # noqa: PLC0415 - not for --help

    rows = []
    with httpx.Client(timeout=SECONDS, follow_redirects=False) as client:
        for entry in found.listed:
            base = _plain(entry.params.get("api_base") or entry.params.get("base_url"))
            if not base or "*" in entry.deployment.model:
                continue
            key = _plain(entry.params.get("api_key"))
            client.headers = httpx.Headers({"Authorization": f"Bearer {key}"} if key else {})
            window, said_by = _window_of(client, base, entry)
            stated = entry.deployment.model_info.get("max_input_tokens") or known_window_tokens(entry.deployment)
            rows.append(Probed(entry.path, entry.group, stated if isinstance(stated, int) else None, window, said_by))
    return rows


def run(config: Path, found: Configuration, *, write: bool, yes: bool) -> list[Probed]:
    """Print what the servers say; with `write`, write the windows that nobody has stated, if the user confirms.

    Raises:
        CommandError: the file cannot be edited, or nobody confirms.
    """
    rows = probed(found)
    if not as_json():
        _print(rows)
    new = {row.path: row.window_tokens for row in rows if row.window_tokens and row.window_tokens != row.stated_tokens}
    if not write or not new:
        return rows
    text = read_text(config)
    changed = with_windows(text, new)
    if not as_json():
        print_text("".join(difflib.unified_diff(text.splitlines(True), changed.splitlines(True), str(config), str(config))))  # noqa: FBT003
    if yes or (not as_json() and confirmed(f"Write {config}?")):
        config.write_text(changed, encoding="utf-8")
    return rows


def with_windows(text: str, windows: Mapping[str, int]) -> str:
    """Return the text of a configuration with windows by path, such as `model_list.0`; comments and layout stay.

    Raises:
        CommandError: its layout is one that cannot be edited.
    """
    import yaml  # noqa: PLC0415 - not for --help

    wanted = yaml_of(text)
    for path in sorted(windows, key=_index, reverse=True):
        wanted["model_list"][_index(path)].setdefault("model_info", {})["max_input_tokens"] = windows[path]
        root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
        listed = next(value for name, value in root.value if name.value == "model_list")
        entry = listed.value[_index(path)]
        text = _with_window(text, entry, windows[path])
    if yaml_of(text) != wanted:
        raise CommandError("the layout of model_list is one that this command cannot edit: write max_input_tokens by hand")
    return text


def _with_window(text: str, entry: Any, tokens: int) -> str:
    info = next((value for name, value in entry.value if name.value == "model_info"), None)
    line = f"max_input_tokens: {tokens}"
    if info is None:
        last = entry.value[-1][1].end_mark.index
        if entry.flow_style:
            return f"{text[:last]}, model_info: {{{line}}}{text[last:]}"
        start = entry.value[0][0].start_mark
        return f"{text[: start.index]}model_info: {{{line}}}\n{' ' * start.column}{text[start.index :]}"
    old = next((value for name, value in info.value if name.value == "max_input_tokens"), None)
    if old is not None:
        return f"{text[: old.start_mark.index]}{tokens}{text[old.end_mark.index :]}"
    start = info.start_mark
    if info.flow_style:
        return f"{text[: start.index + 1]}{line}{', ' if info.value else ''}{text[start.index + 1 :]}"
    return f"{text[: start.index]}{line}\n{' ' * start.column}{text[start.index :]}"


def _print(rows: list[Probed]) -> None:
    out = console()
    if not rows:
        out.print("\nNo deployment has an address of its own to ask.")
        return
    shown = table("model group", "stated", "the server says", "from", right=(1, 2))
    for row in rows:
        figures = (f"{tokens:,}" if tokens else "-" for tokens in (row.stated_tokens, row.window_tokens))
        shown.add_row(row.model_group, *figures, row.said_by)
    out.print(f"\n{counted(len(rows), 'server')} asked", style="bold")
    out.print(shown)


def _window_of(client: httpx.Client, base: str, entry: Listed) -> tuple[int | None, str]:
    """Return a server's window and the route that states it; None and the reason without one."""
    model = entry.deployment.model.split("/", 1)[-1]
    parts = urlsplit(base)
    root = f"{parts.scheme}://{parts.netloc}"
    card = _json(client, "GET", f"{base.rstrip('/')}/models")
    reachable = card is not None
    cards = [mapping_or_empty(each) for each in mapping_or_empty(card).get("data") or ()]
    for each in [c for c in cards if c.get("id") == model] or cards[:1] * (len(cards) == 1):
        if isinstance(each.get("max_model_len"), int):
            return each["max_model_len"], "/v1/models"
    props = mapping_or_empty(_json(client, "GET", f"{root}/props"))
    size = mapping_or_empty(props.get("default_generation_settings")).get("n_ctx")
    if isinstance(size, int) and size > 0:
        return size, "/props"
    loaded = mapping_or_empty(_json(client, "GET", f"{root}/api/ps")).get("models") or ()
    for each in map(mapping_or_empty, loaded):
        if model in (each.get("name"), each.get("model")) and isinstance(each.get("context_length"), int):
            return each["context_length"], "/api/ps"
    shown = mapping_or_empty(_json(client, "POST", f"{root}/api/show", {"model": model}))
    set_to = NUM_CTX.search(str(shown.get("parameters") or ""))
    if set_to is not None:
        return int(set_to[1]), "/api/show"
    if shown.get("model_info"):  # the model's own maximum; Ollama serves less unless it is told
        return None, "Ollama: the model is not loaded and states no num_ctx"
    info = mapping_or_empty(_json(client, "GET", f"{root}/info"))
    most = info.get("max_input_tokens") or info.get("max_input_length")
    if isinstance(most, int):
        return most, "/info"
    return None, "the server does not say" if reachable else "no answer"


def _json(client: httpx.Client, method: str, url: str, body: Mapping[str, Any] | None = None) -> Any:
    """Return the JSON of an answer, None for anything else."""
    import httpx  # noqa: PLC0415

    try:
        answer = client.request(method, url, json=body)
        return answer.json() if answer.is_success else None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):  # no server there, or one of another kind
        return None


def _plain(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    return os.environ.get(text.removeprefix(VARIABLE), "") if text.startswith(VARIABLE) else text


def _index(path: str) -> int:
    return int(path.rsplit(".", 1)[-1])
