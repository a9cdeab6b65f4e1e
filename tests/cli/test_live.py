"""`serve` and `tail`: event files as they grow, in a real browser, and signed in by LiteLLM's own claims."""

import json
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from dataclasses import replace

import httpx
import pytest
import uvicorn
from told_events import ANSWER, CALL, DECISION, EVENTS, FAILURE, FAULT, OVERFLOW

from ctx_hooks.cli import main
from ctx_hooks.cli.report import event_files, server
from ctx_hooks.cli.report.event_files import Watched
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.telemetry.events import LimitEvent
from ctx_hooks.testing import free_port

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
LIMIT = LimitEvent("limit_learned", "id:model", "limit", 8_000, 10_000)
OTHER = replace(CALL, request_id="other", model_group="big", team_alias="Payments", session="00ff")


def write(folder, *events):
    with (folder / "events.1.jsonl").open("a") as file:
        file.writelines(to_json(event) + "\n" for event in events)


@contextmanager
def serving(folder, key=b""):
    """Serve what the files of a folder have now; yield a client."""
    watched, port = Watched([str(folder)]), free_port()
    list(watched.new_events())
    application = server.application(watched, key)
    made = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=httpx.HTTPTransport(retries=20)) as client:
        yield client
    made.should_exit = True
    thread.join(10)


def test_state_has_the_figures_of_the_report(tmp_path):
    write(tmp_path, DECISION, ANSWER, replace(DECISION, call=OTHER, mode="observe"))
    write(tmp_path, replace(OVERFLOW, call=OTHER), replace(FAILURE, call=OTHER, mode="observe"), FAULT)
    with serving(tmp_path) as client:
        state = client.get("/api/state").json()
        filtered = client.get("/api/state", params={"team": "Payments", "chosen": "request"}).json()["html"]
    assert "Of 1 request, <b>1 was too long for the model</b>" in state["html"]
    assert FAULT.consequence in state["html"]
    assert (state["choices"]["group"], state["events"], state["progress"]) == (["group", "big"], 6, 1.0)
    assert "Enforced: what was done" in state["html"]
    assert "Enforced: what was done" not in filtered
    assert "Observed: what would have been done" in filtered
    assert "oldest turns: 5,000 tokens of 12 messages" in filtered, "the chosen request is explained"


def test_growth_and_rotation_are_followed(tmp_path):
    watched = Watched([str(tmp_path)])

    def read():
        return [event.name for event in watched.new_events()]

    write(tmp_path, DECISION)
    assert read() == ["decision"]
    with (tmp_path / "events.1.jsonl").open("a") as file:
        line = to_json(ANSWER)
        file.write(line[:50])
        file.flush()
        assert read() == []
        file.write(line[50:] + "\n")
    assert read() == ["answer"]
    (tmp_path / "events.1.jsonl").rename(tmp_path / "events.1.jsonl.1")
    write(tmp_path, FAILURE)
    assert read() == ["failure"]
    assert watched.read_bytes == watched.all_bytes


def test_old_requests_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(event_files, "MOST_REQUESTS", 10)
    write(tmp_path, *(replace(DECISION, call=replace(CALL, request_id=f"r{n}")) for n in range(25)))
    watched = Watched([str(tmp_path)])
    list(watched.new_events())
    assert list(watched.turns) == [f"r{n}" for n in range(15, 25)]


def test_only_claim_of_an_admin_signs_in(tmp_path, monkeypatch):
    monkeypatch.setenv("LITELLM_SALT_KEY", "sk-salt")
    from litellm.proxy.plugin_routes import issue_plugin_session_claim as issue

    write(tmp_path, DECISION)
    valid = issue("ctx-hooks", "ann", "proxy_admin")
    wrong = [issue("ctx-hooks", "ann", "internal_user"), issue("another", "ann", "proxy_admin"), "", "gAAAAA", 7, None, {}]
    with serving(tmp_path, server.dashboard_key()) as client:
        assert client.get("/api/state").status_code == 401
        assert client.get("/api/plugin-manifest").json()["nav_items"][0]["path"] == "/"
        assert client.post("/api/plugin-auth", content=b"no json").status_code == 401
        for claim in (*wrong, valid):
            answer = client.post("/api/plugin-auth", json={"session_claim": claim})
            assert answer.status_code == (200 if claim == valid else 401)
            token = answer.json().get("token", "none")
            state = client.get("/api/state", headers={"authorization": f"Bearer {token}"})
            assert state.status_code == answer.status_code


def test_without_a_key_only_this_machine_is_answered(tmp_path, monkeypatch, capsys):
    """A name that an attacker lets resolve to this machine is no way in."""
    monkeypatch.delenv("LITELLM_SALT_KEY", raising=False)
    assert main(["serve", str(tmp_path), "--host", "0.0.0.0"]) == 2  # noqa: S104 - is refused
    assert "LITELLM_SALT_KEY" in capsys.readouterr().err
    with serving(tmp_path) as client:
        assert client.get("/api/state", headers={"host": "attacker.example"}).status_code == 401
        assert client.get("/api/state").status_code == 200
        assert "frame-ancestors 'none'" in client.get("/").headers["content-security-policy"]


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_browser_shows_requests(tmp_path):
    hostile = replace(CALL, request_id='hostile"><img>', team_alias="<img src=x onerror=alert(1)>" * 4)
    write(tmp_path, *EVENTS, replace(DECISION, call=hostile), replace(ANSWER, call=hostile))
    options = ["--headless", "--no-sandbox", "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]
    with serving(tmp_path) as client:
        command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'browser'}", str(client.base_url)]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "answered shorter" in shown.stdout
    assert "&lt;img src=x" in shown.stdout
    assert "<img" not in shown.stdout.replace('hostile"><img>', "")
    assert "CONSOLE" not in shown.stderr


def test_tail_prints_a_line_for_each_decision(tmp_path, capsys):
    gone = replace(CALL, request_id="gone", team_alias="evil\x1b[2J")
    fallback = replace(DECISION, call=gone, decision="fallback", mode="observe")
    limit = replace(LIMIT, deployment=f"{'0123456789abcdef' * 4}:model")
    write(tmp_path, DECISION, ANSWER, fallback, replace(fallback, attempt=1), replace(FAILURE, call=gone), limit)
    assert main(["tail", str(tmp_path)]) == 0
    decided, away, failed, learned = capsys.readouterr().out.splitlines()
    assert re.search("compressed +9,900 → +4,400 +group Research", decided)
    assert re.search(r"fallback .+\(observed\)", away), "the fallback's own attempt is no further decision"
    assert re.search("^.{8}  failed ", failed)
    assert json.dumps("evil\x1b")[1:-1] in failed
    assert re.search(r"^\d\d:\d\d:\d\d  limit_learned +8,000 +01234567:model", learned)


def test_tail_merges_workers_by_time(tmp_path, capsys):
    for worker in range(2):
        folder = tmp_path / str(worker)
        folder.mkdir()
        write(folder, *(replace(DECISION, time_seconds=60.0 * (2 * n + worker)) for n in range(3)))
    assert main(["tail", str(tmp_path / "0"), str(tmp_path / "1")]) == 0
    minutes = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert minutes == sorted(minutes)
    assert len(minutes) == 6
