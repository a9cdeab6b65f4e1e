"""`ctx-hooks replay` prints each request of a recorded session: tokens, compactions, cache share and cost."""

from __future__ import annotations

import json

from ctx_hooks.cli import main
from ctx_hooks.testing import agent_session


def test_replay_prints_each_request_and_the_cost(tmp_path, capsys):
    sessions = tmp_path / "sessions.jsonl"
    messages = agent_session("openai-chat", turns=40)["messages"]
    sessions.write_text(json.dumps({"id": "one", "format": "openai-chat", "messages": messages}) + "\n")
    assert main(["replay", str(sessions), "--budget", "6000"]) == 0
    printed = capsys.readouterr().out
    for expected in ("one: ", "compactions", "replayed", "uncompressed", "sliding", "cache share"):
        assert expected in printed
