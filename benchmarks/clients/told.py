"""Clients that know the window by the settings that `ctx-hooks clients` prints, and who compacts: the client or the proxy.

    uv run python benchmarks/clients/told.py [--cache FOLDER] [NAME...]

Each client has two sessions of 25 files at one deployment whose window the proxy does not know: without the settings, then
with them. A row has the figures of both: overflows, the client's own compactions, and requests that the proxy compacted.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from client import Client
from descriptions import CLIENTS
from installing import install
from model import DONE, Model, asks_for_summary
from row import figures
from run import RESPONSES, configuration
from session import prepare, run
from tools import reader

from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.windows import sizes_of
from ctx_hooks.conversation.placeholders import MARK
from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess
from ctx_hooks.testing.processes import MASTER_KEY

KEYS = ("codex", "claude-code", "opencode", "pi", "qwen-code", "kimi-code", "cline", "gemini-cli")
WINDOW_TOKENS = 60_000
LEAST_HISTORY_TOKENS = 20_000
"""A request without tools before one of this size is for a title, later ones are for summaries."""
ALIASES = {"gemini-3.1-pro-preview-customtools": "gemini-cli-unknown"}
"""Gemini CLI compacts with a model of its own choice."""
HEAD = "| client | finished | overflows | client compacted | proxy compacted |\n|---|---|---|---|---|"


def with_settings(client: Client, printed: str) -> Client:
    """Return a client whose environment or file has its section of the printed settings too."""
    place, body = printed.split(f"## {client.name}: ")[1].split("\n## ", maxsplit=1)[0].split("\n", 1)
    if place == "environment":
        printed_names = dict(re.findall(r"export (\w+)=(.*)", body))
        return dataclasses.replace(client, environment={**printed_names, **client.environment})
    path, text = next((path, text) for path, text in client.files.items() if Path(path).name == Path(place.split()[0]).name)
    both = joined_tables(body, text) if path.endswith(".toml") else json.dumps(merged(json.loads(body), json.loads(text)))
    return dataclasses.replace(client, files={**client.files, path: both})


def joined_tables(printed: str, own: str) -> str:
    """Return TOML with the keys and tables of both: of two equal tables the printed stays, of two equal keys the own."""
    (keys, *tables), (own_keys, *own_tables) = (re.split(r"^(?=\[)", text, flags=re.MULTILINE) for text in (printed, own))
    names = {line.split("=")[0] for line in own_keys.splitlines()}
    added = [line for line in keys.splitlines() if line.split("=")[0] not in names]
    titles = {table.splitlines()[0] for table in tables}
    kept = [table for table in own_tables if table.splitlines()[0] not in titles]
    return "\n".join([own_keys, *added, *kept, *tables])


def merged(printed: Any, own: Any) -> Any:
    """Return printed settings with a client's own: mappings are joined, and of texts the client's own stays."""
    if isinstance(printed, Mapping) and isinstance(own, Mapping):
        return {**printed, **{key: merged(printed[key], value) if key in printed else value for key, value in own.items()}}
    return printed if isinstance(printed, list) else own


def printed_for(client: Client, config: Mapping[str, Any], url: str) -> str:
    """Return what `ctx-hooks clients` prints for a proxy's configuration that states the window."""
    listed = [{**entry, "model_info": {"max_input_tokens": WINDOW_TOKENS}} for entry in config["model_list"]]
    _, compact_at = sizes_of(configuration_of({**config, "model_list": listed}))[f"{client.key}-unknown"]
    group = {"name": "$model", "window_tokens": WINDOW_TOKENS, "compact_at_tokens": compact_at}
    return render("clients.txt", groups=[group], url=url) + "\n\n"


def cells(records: Sequence[Mapping[str, Any]], *, is_done: bool) -> tuple[Any, ...]:
    """Return how a session ended, its overflows, the client's own compactions, and the requests that the proxy compacted."""
    answered = [record for record in records if record["status"] == 200]
    largest = itertools.accumulate((record["input_tokens"] for record in answered), max)
    later = [r["payload"] for r, tokens in zip(answered, largest, strict=True) if tokens > LEAST_HISTORY_TOKENS]
    own = sum(reader(payload) is None or asks_for_summary(payload) for payload in later)
    return "yes" if is_done else "no", figures(records).overflows, own, sum(MARK in json.dumps(each) for each in later)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ctx_hooks_clients"))
    options = parser.parse_args()
    clients = [c for c in CLIENTS if c.key in KEYS and (not options.names or any(n in c.key for n in options.names))]
    print(HEAD, flush=True)
    script = Model()
    with FakeProvider(ProviderSettings(window_tokens=WINDOW_TOKENS), script) as provider:
        config = configuration(clients, provider.url, WINDOW_TOKENS)
        with ProxyProcess({**config, "router_settings": {"model_group_alias": ALIASES}}) as proxy:
            for client in clients:
                installed = install(client, options.cache.resolve())
                both = []
                values = {"url": proxy.url, "key": MASTER_KEY, "model": f"{client.key}-unknown"}
                for each in (client, with_settings(client, printed_for(client, config, proxy.url))):
                    folder = options.cache.resolve() / "sessions" / f"{client.key}-{len(both) + 1}"
                    script.begin(prepare(folder))
                    provider.reset(wording="openai_responses" if client.route == RESPONSES else client.provider)
                    ended = run(each, installed, folder, values)
                    is_done = ended.status == 0 and script.done and DONE in ended.output
                    both.append(cells(provider.requests(), is_done=is_done))
                print("|", " | ".join([client.name, *(f"{a}, {b}" for a, b in zip(*both, strict=True))]), "|", flush=True)


if __name__ == "__main__":
    main()
