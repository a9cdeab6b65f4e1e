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


def test_fidelity_compares_contestants(tables):
    alone, ours, known = (tables["fidelity"][name] for name in ("LiteLLM alone", *CONTESTANTS))
    assert (alone["recall"], alone["over budget"]) == ("1.000 / 1.000", "1.000 / 1.000")
    assert (ours["over budget"], ours["unpaired"]) == ("0.000 / 0.000", "0.000 / 0.000")
    assert (known["recall"], known["steps"]) == ("– / 0.250", "– / 1"), "an earlier run's result is not measured again"


def test_prices_follow_the_cache(tables):
    requests = tables["requests"]
    shares, prices = (
        {name: [float(figure) for figure in row[column].split(" / ")] for name, row in requests.items()}
        for column in ("cache share", "price")
    )
    assert all(row["requests"] == "5 / 5" for row in requests.values())
    assert prices["LiteLLM alone"] == [1.0, 1.0]
    assert shares["keep newest"] == [0.0, 0.0]
    assert all(share > 0.5 for share in shares["ctx_hooks, a session"])
    assert all(ours < slid for ours, slid in zip(prices["ctx_hooks, a session"], prices["keep newest"], strict=True))
