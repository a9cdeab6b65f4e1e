"""Codex with its own remote compaction, on deployments that have none: with the policy field `compaction_api` and without.

    uv run python benchmarks/clients/compaction.py [--cache FOLDER] [--logs FOLDER]

Codex is told that its provider is OpenAI, and compacts at 40,000 tokens. A scripted model asks for 60 files of about 4,000
tokens. Each row is a session: how it ended, how many compactions it had, and the item's share with a model's summary.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import model as scripted
import session
from descriptions.codex import CLIENT, CONFIGURATION
from installing import install
from model import DONE, Model

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess
from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.processes import MASTER_KEY
from ctx_hooks.testing.rules import Format, violations

CALLS = 60
COMPACTS_AT_TOKENS = 40_000
ASKED = "Write a summary of this conversation"
SUMMARY = "## Goal: read every file and say when done\n## Findings: the files hold generated source text"
CODEX = dataclasses.replace(
    CLIENT,
    files={
        ".codex/config.toml": f"model_auto_compact_token_limit = {COMPACTS_AT_TOKENS}\n"
        + CONFIGURATION.replace('name = "proxy"', 'name = "OpenAI"')
    },
)
DEPLOYMENTS = {"anthropic": "anthropic/claude-files", "vllm": "hosted_vllm/files"}


class Summarising(Model):
    """A model that also writes the summaries that it is asked for."""

    compactions = 0

    def __call__(self, fmt: Format, payload: Mapping[str, Any], before: int) -> Reply:
        """Return the next answer."""
        items = payload.get("messages") or payload.get("input") or [""]
        if ASKED in json.dumps(items[-1]):
            self.compactions += 1
            return Reply(SUMMARY)
        return super().__call__(fmt, payload, before)


def configuration(url: str) -> dict[str, Any]:
    """Return the proxy's configuration: each deployment with the policy field and without."""
    listed = []
    for name, served in DEPLOYMENTS.items():
        for on in (True, False):
            params = {"model": served, "api_base": url + ("/v1" if name == "vllm" else ""), "api_key": "not-a-key"}
            info = {"max_input_tokens": 400_000, "ctx_hooks": {"compaction_api": on}}
            listed.append({"model_name": f"{name}-{'on' if on else 'off'}", "litellm_params": params, "model_info": info})
    return {
        "model_list": listed,
        "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"], "drop_params": True},
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir(), "ctx_hooks_clients"))
    parser.add_argument("--logs", type=Path, default=Path(tempfile.gettempdir(), "ctx_hooks_compaction_logs"))
    options = parser.parse_args()
    scripted.CALLS = session.CALLS = CALLS
    scripted.PROMPT = session.PROMPT = scripted.PROMPT.replace("file_25", f"file_{CALLS}")
    installed, script = install(CODEX, options.cache.resolve()), Summarising()
    print("| deployment | compaction_api | finished | calls | compactions | violations |\n|---|---|---|---|---|---|")
    settings = ProviderSettings(window_tokens=400_000)
    with FakeProvider(settings, script) as provider, ProxyProcess(configuration(provider.url)) as proxy:
        for name in DEPLOYMENTS:
            for on in ("on", "off"):
                folder = options.logs.resolve() / f"{name}-{on}"
                script.begin(session.prepare(folder))
                script.compactions = 0
                provider.reset()
                values = {"url": proxy.url, "key": MASTER_KEY, "model": f"{name}-{on}"}
                ended = session.run(CODEX, installed, folder, values)
                broken = sum(bool(violations(r["format"], r["payload"])) for r in provider.requests())
                finished = "yes" if ended.status == 0 and DONE in ended.output else f"no: {ended.output[-160:]!r}"
                print(f"| {name} | {on} | {finished} | {script.calls} | {script.compactions} | {broken} |", flush=True)
        (options.logs.resolve() / "proxy.log").write_text(proxy.log(), encoding="utf-8")


if __name__ == "__main__":
    main()
