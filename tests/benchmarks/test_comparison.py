"""One command prints the tables beside other tools: here for two small sessions, without extra packages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctx_hooks.testing import agent_session

pytestmark = pytest.mark.deploy

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "comparison.py"
BUDGET = 4_000
CONTESTANTS = ["ctx_hooks, a session", "keep newest"]
KNOWN = {
    "source": "other", "session": 0, "format": "anthropic", "contestant": "keep newest", "budget": f"{BUDGET:,}",
    "step": 9, "recall": 0.25, "in_line": 0.25, "distant": None, "used": 0.9, "broken": False, "ms": 1.0,
}  # fmt: skip
"""A result of an earlier run of benchmarks/fidelity.py."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Return the cells of the printed tables by part, row and column."""
    folder = tmp_path_factory.mktemp("comparison")
    formats = ("openai-chat", "anthropic")
    sessions = [{"format": f, "messages": agent_session(f, turns=12, result_chars=2_000)["messages"]} for f in formats]
    (folder / "sessions.jsonl").write_text("\n".join(map(json.dumps, sessions)))
    (folder / "results.jsonl").write_text(json.dumps(KNOWN) + "\n")
    command = [sys.executable, str(PROGRAM), "sessions.jsonl", "--budget", str(BUDGET), "--parts", "fidelity", "requests"]
    command += ["--results", "results.jsonl", "--only", *CONTESTANTS]
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return {part: table(ended.stdout, part) for part in ("fidelity", "requests")}


def table(text, part):
    lines = text.partition(f"\n{part}\n\n")[2].split("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


def test_who_forwards_everything_keeps_everything_and_fits_nothing(tables):
    alone = tables["fidelity"]["LiteLLM alone"]
    assert (alone["recall"], alone["over budget"]) == ("1.000 / 1.000", "1.000 / 1.000")


def test_ctx_hooks_is_never_over_budget_and_leaves_no_call_unpaired(tables):
    ours = tables["fidelity"]["ctx_hooks, a session"]
    assert (ours["over budget"], ours["unpaired"]) == ("0.000 / 0.000", "0.000 / 0.000")


def test_what_an_earlier_run_has_measured_is_not_measured_again(tables):
    assert tables["fidelity"]["keep newest"]["recall"] == "– / 0.250"
    assert tables["fidelity"]["keep newest"]["steps"] == "– / 1"


def test_prices_are_shares_of_what_forwarding_everything_costs(tables):
    assert tables["requests"]["LiteLLM alone"]["price"] == "1.00 / 1.00"
    assert all(found["requests"] == "5 / 5" for found in tables["requests"].values())


def test_a_stable_prefix_is_served_from_the_cache_and_a_sliding_one_is_not(tables):
    shares = {name: [float(f) for f in row["cache share"].split(" / ")] for name, row in tables["requests"].items()}
    assert shares["keep newest"] == [0.0, 0.0]
    assert all(share > 0.5 for share in shares["ctx_hooks, a session"])
    prices = {name: [float(f) for f in row["price"].split(" / ")] for name, row in tables["requests"].items()}
    assert all(ours < slid for ours, slid in zip(prices["ctx_hooks, a session"], prices["keep newest"], strict=True))
