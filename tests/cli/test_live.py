"""`serve` and `tail`: event files as they grow, in a real browser, and signed in by LiteLLM's own claims."""

import json
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
from ctx_hooks.cli.files import files_of
from ctx_hooks.cli.live import server, watching
from ctx_hooks.cli.live.watching import Watched
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.testing import free_port

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
OTHER = replace(CALL, request_id="other", model_group="big", team_alias="Payments", session="00ff")


def write(folder, *events, name="events.1.jsonl"):
    with (folder / name).open("a") as file:
        file.writelines(to_json(event) + "\n" for event in events)


@contextmanager
def serving(folder, key=b""):
    """Serve a folder; yield a client, and the state, which the test reads anew itself."""
    watched, port = Watched(lambda: files_of([str(folder)], "events.*.jsonl*")), free_port()
    application = server.application(watched, key)
    made = uvicorn.Server(uvicorn.Config(application, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=httpx.HTTPTransport(retries=20)) as client:
        yield client, watched
    made.should_exit = True
    thread.join(10)


def read(watched):
    return list(watched.new_events())


def test_state_counts_requests_by_outcome(tmp_path):
    fits = replace(CALL, request_id="fits")
    write(tmp_path, DECISION, ANSWER, replace(DECISION, call=OTHER, mode="observe"))
    write(tmp_path, replace(OVERFLOW, call=OTHER), replace(FAILURE, call=OTHER, mode="observe"))
    write(tmp_path, replace(ANSWER, call=fits, decision="fits", provider_tokens_saved=0), FAULT)
    with serving(tmp_path) as (client, watched):
        read(watched)
        state = client.get("/api/state").json()
        filtered = client.get("/api/state", params={"team": "Payments"}).json()
    enforced, observed = state["totals"]["enforce"], state["totals"]["observe"]
    assert (enforced["requests"], enforced["too_long"], enforced["shortened"], enforced["saved"]) == (2, 1, 1, 5_500)
    assert (observed["requests"], observed["too_long"], observed["failed"], observed["refused"]) == (1, 1, 1, 1)
    assert [row["id"] for row in filtered["requests"]] == ["other"]
    assert state["choices"]["group"] == ["group", "big"]
    assert [fault["consequence"] for fault in state["faults"]] == [FAULT.consequence]
    assert sum(slot["fits"] + slot["shortened"] + slot["failed"] for slot in state["series"]) == 3


def test_growth_and_rotation_are_followed(tmp_path):
    watched = Watched(lambda: files_of([str(tmp_path)], "events.*.jsonl*"))
    write(tmp_path, DECISION)
    assert [event.name for event in read(watched)] == ["decision"]
    with (tmp_path / "events.1.jsonl").open("a") as file:
        line = to_json(ANSWER)
        file.write(line[:50])
        file.flush()
        assert read(watched) == []
        file.write(line[50:] + "\n")
    assert [event.name for event in read(watched)] == ["answer"]
    (tmp_path / "events.1.jsonl").rename(tmp_path / "events.1.jsonl.1")
    write(tmp_path, FAILURE)
    assert [event.name for event in read(watched)] == ["failure"]
    assert watched.read_bytes == watched.all_bytes


def test_old_requests_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "MOST_REQUESTS", 10)
    write(tmp_path, *(replace(DECISION, call=replace(CALL, request_id=f"r{n}")) for n in range(25)))
    watched = Watched(lambda: files_of([str(tmp_path)], "events.*.jsonl*"))
    read(watched)
    assert [row.id for row in watched.rows()] == [f"r{n}" for n in range(15, 25)]


def test_one_request_is_explained_from_its_events(tmp_path):
    write(tmp_path, *EVENTS)
    with serving(tmp_path) as (client, watched):
        read(watched)
        found = client.get("/api/requests/request").json()
        unknown = client.get("/api/requests/unknown")
    assert found["events"][0]["steps"][0]["name"] == "oldest_turns"
    assert "call" not in found["events"][0]
    assert unknown.status_code == 404


@pytest.fixture
def claims(monkeypatch):
    """LiteLLM's own function that makes claims, and the key that belongs to it."""
    monkeypatch.setenv("LITELLM_SALT_KEY", "sk-salt")
    from litellm.proxy.plugin_routes import issue_plugin_session_claim

    return issue_plugin_session_claim, server.dashboard_key()


@pytest.mark.parametrize(
    ("plugin", "role", "status"),
    [("ctx-hooks", "proxy_admin", 200), ("ctx-hooks", "internal_user", 401), ("another", "proxy_admin", 401)],
)
def test_claim_of_admin_signs_in(plugin, role, status, claims, tmp_path):
    issue, key = claims
    write(tmp_path, DECISION)
    with serving(tmp_path, key) as (client, _):
        assert client.get("/api/state").status_code == 401
        answer = client.post("/api/plugin-auth", json={"session_claim": issue(plugin, "ann", role)})
        assert answer.status_code == status
        token = answer.json().get("token", "none")
        assert client.get("/api/state", headers={"authorization": f"Bearer {token}"}).status_code == status
        assert client.get("/api/plugin-manifest").json()["nav_items"][0]["path"] == "/"


@pytest.mark.parametrize("claim", ["", "gAAAAA", 7, None, {"plugin": "ctx-hooks"}])
def test_wrong_claim_is_refused(claim, claims, tmp_path):
    with serving(tmp_path, claims[1]) as (client, _):
        assert client.post("/api/plugin-auth", json={"session_claim": claim}).status_code == 401
        assert client.post("/api/plugin-auth", content=b"no json").status_code == 401


def test_page_of_another_name_reads_nothing(tmp_path):
    """A name that an attacker lets resolve to this machine is no way in."""
    with serving(tmp_path) as (client, _):
        assert client.get("/api/state", headers={"host": "attacker.example"}).status_code == 401
        assert client.get("/api/state").status_code == 200
        assert "frame-ancestors 'none'" in client.get("/").headers["content-security-policy"]


def test_other_address_needs_a_key(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("LITELLM_SALT_KEY", raising=False)
    write(tmp_path, DECISION)
    assert main(["serve", str(tmp_path), "--host", "0.0.0.0"]) == 2  # noqa: S104 - is refused
    assert "LITELLM_SALT_KEY" in capsys.readouterr().err


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [500, 1280])
def test_browser_shows_requests(width, tmp_path):
    script = replace(CALL, request_id="hostile", team_alias="<img src=x onerror=alert(1)>" * 4)
    write(tmp_path, *EVENTS, replace(DECISION, call=script), replace(ANSWER, call=script))
    with serving(tmp_path) as (client, watched):
        read(watched)
        options = ["--headless", "--no-sandbox", f"--window-size={width},900", f"--user-data-dir={tmp_path / 'browser'}"]
        shown = subprocess.run(
            [CHROMIUM, *options, "--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom",
             str(client.base_url)],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
    assert "answered shorter</dt>" in shown.stdout
    assert "&lt;img src=x" in shown.stdout
    assert "<img" not in shown.stdout
    assert "CONSOLE" not in shown.stderr


def test_tail_prints_a_line_for_each_decision(tmp_path, capsys):
    write(tmp_path, DECISION, ANSWER, replace(FAILURE, call=replace(CALL, team_alias="evil\x1b[2J")))
    assert main(["tail", str(tmp_path)]) == 0
    decided, failed = capsys.readouterr().out.splitlines()
    assert "compressed" in decided
    assert "9,900 →     4,400" in decided
    assert "group Research" in decided
    assert "failure" in failed
    assert "\x1b[2J" not in failed
    assert json.dumps("evil\x1b")[1:-1] in failed
