"""The windows of a configuration's deployments: who states each, what its server says, and what clients should know.

Sources of `check --probe`: `max_model_len` of a model's card in `/v1/models` (vLLM and SGLang,
`entrypoints/openai/protocol.py`), `default_generation_settings.n_ctx` of `/props` (llama.cpp, `tools/server/README.md`),
`context_length` of a loaded model in `/api/ps` and `num_ctx` among the parameters of `/api/show` (Ollama, `docs/api.md`),
`max_input_tokens` of `/info` (TGI). Sources of `clients`: the documentation of Codex, opencode, pi and qwen-code; Kimi Code
2.1.0 itself, which reserves 50,000 tokens by default, and cline 3.0.65, which compacts at 90 % of its `contextWindow`;
Claude Code 2.1.197, whose `CLAUDE_CODE_AUTO_COMPACT_WINDOW` is at least 100,000, and `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE` a
share of it less 20,000; `tokenLimits.ts` of Gemini CLI, which takes every model to hold 1,048,576 tokens.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

from ctx_hooks.attempts.target import window_at
from ctx_hooks.cli.configuration import Configuration, plain_text, read_configuration
from ctx_hooks.cli.editing import change
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.terminal import CommandError, as_json, console, counted, print_json, print_text, table
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.deployments import known_window_tokens
from ctx_hooks.tokens.budget import budget_tokens_of

EARLIER_FRACTION = 0.9
"""A client compacts between two requests: it has to begin before the proxy's budget is reached."""
SECONDS = 5.0
"""A server that is up answers these routes at once."""
NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


def windows(found: Configuration) -> list[dict[str, Any]]:
    """Return the window of each deployment, and who states it."""
    known = [window_at(entry.deployment, found.resolved(entry).policy) for entry in found.listed]
    return [
        {
            "model_group": entry.group,
            "model": entry.deployment.model,
            "window_tokens": None if window.source == "default" and "*" in entry.deployment.model else window.tokens,
            "window_source": window.source,
        }
        for entry, window in zip(found.listed, known, strict=True)
    ]


def print_clients_settings(*, config: Path, url: str) -> None:
    """Print each client's settings for the groups whose window is known; raises CommandError if there is none."""
    sizes = sizes_of(read_configuration(config))
    if not sizes:
        raise CommandError(
            f"{config}: nobody states the window of a model group; `ctx-hooks check {config} --probe` asks servers"
        )
    groups = [{"name": name, "window_tokens": size[0], "compact_at_tokens": size[1]} for name, size in sizes.items()]
    if as_json():
        print_json(groups)
    else:
        print_text(render("clients.txt", groups=groups, url=url.rstrip("/")))


def sizes_of(found: Configuration) -> dict[str, tuple[int, int]]:
    """Return of each group the smallest stated window of its deployments, and the size at which a client should compact."""
    sizes: dict[str, tuple[int, int]] = {}
    for entry in found.listed:
        policy = found.resolved(entry).policy
        window = window_at(entry.deployment, policy)
        if window.source != "default" and "*" not in entry.group:
            size = (int(window.tokens), int(EARLIER_FRACTION * budget_tokens_of(window, policy)))
            sizes[entry.group] = min(sizes.get(entry.group, size), size)
    return sizes


@dataclass(frozen=True, slots=True)
class Probed:
    """The answer of a deployment's server: the window in tokens, None without one, and the route that states it."""

    index: int
    model_group: str
    stated_tokens: int | None
    window_tokens: int | None
    said_by: str


def ask_servers(config: Path, found: Configuration, *, write: bool, yes: bool) -> list[Probed]:
    """Print what the servers say; with `write`, write the windows that differ from the stated ones, if the user confirms."""
    rows, out = list(_probed(found)), console()
    if not as_json():
        shown = table("model group", "stated", "the server says", "from", right=(1, 2))
        for row in rows:
            figures = (f"{tokens:,}" if tokens else "-" for tokens in (row.stated_tokens, row.window_tokens))
            shown.add_row(row.model_group, *figures, row.said_by)
        out.print(f"\n{counted(len(rows), 'server')} asked", style="bold")
        out.print(shown)
    new = [row for row in rows if row.window_tokens and row.window_tokens != row.stated_tokens]
    if write and new:
        changes = {("model_list", row.index, "model_info", "max_input_tokens"): row.window_tokens for row in new}
        change(config, changes, yes=yes)
    return rows


def _probed(found: Configuration) -> Iterator[Probed]:
    """Yield the answer of each server that the deployments of a configuration name by an address."""
    for index, entry in enumerate(found.listed):
        base = plain_text(entry.params.get("api_base") or entry.params.get("base_url"))
        if not base or "*" in entry.deployment.model:
            continue
        key = plain_text(entry.params.get("api_key"))
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        with httpx.Client(timeout=SECONDS, headers=headers) as client:
            answers = _answers(client, base.rstrip("/"), entry.deployment.model.split("/", 1)[-1])
            said = next(((tokens, route) for tokens, route in answers if isinstance(tokens, int) and tokens > 0), None)
        stated = entry.deployment.model_info.get("max_input_tokens") or known_window_tokens(entry.deployment)
        yield Probed(index, entry.group, stated if isinstance(stated, int) else None, *(said or (None, "not stated")))


def _answers(client: httpx.Client, base: str, model: str) -> Iterator[tuple[Any, str]]:
    """Yield what each kind of server would state as the window of a model, and at which route."""
    root = urljoin(base, "/").rstrip("/")
    cards = list(map(mapping_or_empty, _json(client, f"{base}/models").get("data") or ()))
    for card in [card for card in cards if card.get("id") == model] or cards[:1] * (len(cards) == 1):
        yield card.get("max_model_len"), "/v1/models"
    settings = mapping_or_empty(_json(client, f"{root}/props").get("default_generation_settings"))
    yield settings.get("n_ctx"), "/props"
    for loaded in map(mapping_or_empty, _json(client, f"{root}/api/ps").get("models") or ()):
        if model in (loaded.get("name"), loaded.get("model")):
            yield loaded.get("context_length"), "/api/ps"
    # Its `model_info` has the model's own maximum; Ollama serves less by default.
    found = NUM_CTX.search(str(_json(client, f"{root}/api/show", {"model": model}).get("parameters")))
    yield found and int(found[1]), "/api/show"
    yield _json(client, f"{root}/info").get("max_input_tokens"), "/info"


def _json(client: httpx.Client, url: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """Return the JSON of an answer, an empty mapping for anything else."""
    try:
        answer = client.request("POST" if body else "GET", url, json=body)
        return mapping_or_empty(answer.json()) if answer.is_success else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError):  # no server there, or one of another kind
        return {}
