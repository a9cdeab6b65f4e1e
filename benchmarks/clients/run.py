"""Real clients and SDKs, each through 25 tool calls in a window of 60,000 tokens, behind a proxy with the plugin.

    uv run python benchmarks/clients/run.py [--cache FOLDER] [--logs FOLDER] [--window TOKENS] [--retrieval] [NAME...]

Each client is installed into the cache folder, started in a home of its own, and reads 25 files of about 4,000 tokens, for
which a scripted model behind the strict provider asks; once with the window known to the proxy and once unknown. The
command needs pip and npm for the first run, and no network afterwards. The log folder keeps what each client printed and
every upstream request. NAME chooses clients by a part of their name. With `--retrieval` the scripted model asks once for
something that was cut.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from client import Client
from descriptions import CLIENTS
from installing import install
from model import DONE, Model
from row import HEAD, figures, line
from session import Ended, prepare, run

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess
from ctx_hooks.testing.processes import MASTER_KEY

WINDOWS = ("known", "unknown")
RESPONSES = "/v1/responses"
"""OpenAI's refusal on this route names no figure."""


def configuration(
    clients: Sequence[Client], provider_url: str, window_tokens: int, *, retrieval: bool = False
) -> dict[str, Any]:
    """Return a proxy's configuration: a deployment for each session, so that none learns from another."""
    return {
        "model_list": [_deployment(client, window, provider_url, window_tokens) for client in clients for window in WINDOWS],
        "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"]},
        "callback_settings": {"ctx_hooks": {"defaults": {"retrieval": retrieval}}},
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
    }


def _group(client: Client, window: str) -> str:
    return f"{client.key}-{window}"


def _deployment(client: Client, window: str, provider_url: str, window_tokens: int) -> dict[str, Any]:
    group = _group(client, window)
    bases = {"openai": f"{provider_url}/v1", "anthropic": provider_url, "gemini": f"{provider_url}/v1beta"}
    params = {"model": f"{client.provider}/{group}", "api_base": bases[client.provider], "api_key": "not-a-key"}
    info = {"max_input_tokens": window_tokens} if window == "known" else {}
    return {"model_name": group, "litellm_params": params, "model_info": info}


def rows(
    clients: Sequence[Client], cache: Path, logs: Path, window_tokens: int, *, retrieval: bool = False
) -> Iterator[str]:
    """Yield a row for each session, as it ends."""
    model = Model(retrieves=retrieval)
    with (
        FakeProvider(ProviderSettings(window_tokens=window_tokens), model) as provider,
        ProxyProcess(configuration(clients, provider.url, window_tokens, retrieval=retrieval)) as proxy,
    ):
        for client in clients:
            try:
                installed = install(client, cache)
            except subprocess.SubprocessError as error:
                yield f"{client.name} cannot be installed: {error}"
                continue
            for window in WINDOWS:
                group = _group(client, window)
                folder = logs / group
                model.begin(prepare(folder))
                provider.reset(wording="openai_responses" if client.route == RESPONSES else client.provider)
                ended = run(client, installed, folder, {"url": proxy.url, "key": MASTER_KEY, "model": group})
                records = provider.requests()
                (folder / "requests.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
                yield line(client, installed.version, window, _finished(ended, model), figures(records))
        (logs / "proxy.log").write_text(proxy.log(), encoding="utf-8")


def _finished(ended: Ended, model: Model) -> str:
    """Say whether the model came to its end and the client told so."""
    if ended.status is None:
        return f"no: time was up after {model.calls} calls"
    if ended.status or not model.done or DONE not in ended.output:
        return f"no: status {ended.status} after {model.calls} calls"
    return f"yes, retrieved {model.retrieved}" if model.retrieved else "yes"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ctx_hooks_clients"))
    parser.add_argument("--logs", type=Path, default=Path(tempfile.gettempdir(), "ctx_hooks_client_logs"))
    parser.add_argument("--window", type=int, default=60_000, help="the provider's window in tokens")
    parser.add_argument("--retrieval", action="store_true", help="let the model ask once for what was cut")
    options = parser.parse_args()
    chosen = [c for c in CLIENTS if not options.names or any(n.lower() in c.name.lower() for n in options.names)]
    print(HEAD, flush=True)
    for row in rows(chosen, options.cache.resolve(), options.logs.resolve(), options.window, retrieval=options.retrieval):
        print(row, flush=True)


if __name__ == "__main__":
    main()
