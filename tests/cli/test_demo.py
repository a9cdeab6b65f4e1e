"""`ctx-hooks demo` looks at the installation, asks a real proxy over every route and prints a row for each."""

import json

import pytest
import yaml
from proxies import Proxy

from ctx_hooks.cli import demo, main
from ctx_hooks.cli.demo import WINDOW_TOKENS
from ctx_hooks.testing import LOOPBACK, agent_session, free_port

CHAT, MESSAGES, RESPONSES, GOOGLE = "/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1beta/models"
ROUTES = (CHAT, CHAT, MESSAGES, MESSAGES, RESPONSES, GOOGLE, GOOGLE)


@pytest.fixture(autouse=True)
def _forked(monkeypatch):
    """The command's proxy is a fork; that of an interrupted one in `test_command_line.py` starts as a user's does."""
    monkeypatch.delenv("CTX_HOOKS_ENABLED", raising=False)
    monkeypatch.setattr(demo, "ProxyProcess", Proxy)
    monkeypatch.setattr(demo, "TURNS", 20)  # twice the window


def test_every_route_is_answered_within_the_window(capsys, monkeypatch):
    found = list(demo.answers())
    monkeypatch.setattr(demo, "answers", lambda: iter(found))
    assert main(["demo"]) == 0
    lines = capsys.readouterr().out.splitlines()
    (heading,) = (n for n, line in enumerate(lines) if line.startswith("route"))
    rows = [line.split() for line in lines[heading + 1 : heading + 1 + 2 * len(ROUTES)]]
    assert lines[heading].split() == ["route", "deployment", "stream", "sent", "asked", "accepted", "answer"]
    assert lines[-1] == "Every route was answered."
    assert max(map(len, lines)) <= 80
    assert [(row[0], row[-5]) for row in rows] == [(route, stream) for route in ROUTES for stream in ("no", "yes")]
    for row in rows:
        sent, attempts, accepted = (int(figure.replace(",", "")) for figure in row[-4:-1])
        assert sent > WINDOW_TOKENS >= accepted > 0
        assert attempts == (1 if "configured" in row else 2)
        assert row[-1] == "yes"
    assert main(["demo", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(each["name"], each["level"]) for each in printed.pop("findings")] == [
        (name, "ok") for name in ("versions", "vocabularies", "seam")
    ]
    assert printed == {"window_tokens": WINDOW_TOKENS, "answered": True, "requests": found}


def test_doctor_examines_and_starts_nothing(capsys, monkeypatch):
    monkeypatch.setattr(demo, "answers", None)
    for value, code in (("1", 0), ("0", 1)):
        monkeypatch.setenv("CTX_HOOKS_ENABLED", value)
        assert main(["doctor", "--json"]) == code
        levels = {f["name"]: f["level"] for f in json.loads(capsys.readouterr().out)["findings"]}
        assert (levels.get("switched_off"), levels["seam"], levels["versions"]) == ("fails" if code else None, "ok", "ok")


def test_unsupported_litellm_fails():
    versions = ("1.102.0", "1.107.0", "2.0.0", "1.103.0", "1.106.2")
    found = list(map(demo.versions_finding, versions))
    assert [finding.level for finding in found] == ["fails"] * 3 + ["ok"] * 2
    assert "pip install 'litellm[proxy]" in found[0].advice


def test_provider_is_served_as_printed(capsys, monkeypatch):
    asked = []

    def ask():
        (model,) = yaml.safe_load(capsys.readouterr().out.partition("\n\n")[2])
        url = f"{model['litellm_params']['api_base']}/chat/completions"
        asked.extend(LOOPBACK.post(url, json=agent_session("openai-chat", turns=n)).status_code for n in (1, 60))
        asked.append(model["model_info"]["max_input_tokens"])

    monkeypatch.setattr(demo, "until_interrupted", ask)
    assert main(["demo", "--provider-only"]) == 0
    assert main(["demo", "--provider-only", "--window", "1000000"]) == 0
    assert asked == [200, 400, WINDOW_TOKENS, 200, 200, 1_000_000]


def test_port_in_use_is_an_error(capsys, monkeypatch):
    port = free_port()

    def ask_for_the_port_again():
        monkeypatch.setattr(demo, "until_interrupted", lambda: None)
        assert f"http://127.0.0.1:{port}/v1" in capsys.readouterr().out
        assert main(["demo", "--provider-only", "--port", str(port)]) == 2

    monkeypatch.setattr(demo, "until_interrupted", ask_for_the_port_again)
    assert main(["demo", "--provider-only", "--port", str(port)]) == 0
    assert f"cannot listen on port {port}" in capsys.readouterr().err
