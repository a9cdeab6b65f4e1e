"""`ctx-hooks doctor` says whether the plugin works in this installation, and what in a configuration could be better."""

import json

import pytest
import yaml
from proxies import Proxy
from redis_process import RedisProcess

from ctx_hooks.cli import demo, main
from ctx_hooks.cli.doctor import versions_finding
from ctx_hooks.cli.weak_spots import CALLBACK


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "CTX_HOOKS_ENABLED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(demo, "ProxyProcess", Proxy)  # a fork; where the package is built, one starts as a user's does
    monkeypatch.setattr(demo, "TURNS", 20)  # twice the window


@pytest.fixture
def told(capsys):
    """Returns a function that runs the command and returns its code and its findings by name."""

    def run(*arguments):
        code = main(["doctor", *arguments, "--json"])
        document = json.loads(capsys.readouterr().out)
        assert document["works"] == (code == 0)
        found = {}
        for finding in document["findings"]:
            found.setdefault(finding["name"], []).append(finding)
        return code, found

    return run


def written(tmp_path, **sections):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(sections))
    return str(path)


def test_every_route_works_here(told):
    code, found = told()
    assert [f["level"] for f in found["route"]] == ["ok"] * 14
    assert [f["text"].rpartition("; ")[2] for f in found["route"] if "window configured" not in f["text"]] == [
        "2 attempts"
    ] * 12
    assert [f["level"] for name in ("versions", "vocabularies", "seam") for f in found[name]] == ["ok"] * 3
    assert found["redis"][0]["level"] == "note"
    assert code == 0


def test_a_plugin_that_is_off_is_found_on_every_route(told, monkeypatch):
    monkeypatch.setenv("CTX_HOOKS_ENABLED", "0")
    code, found = told()
    assert code == 1
    assert found["switched_off"][0]["level"] == "fails"
    assert {f["level"] for f in found["route"]} == {"fails"}
    assert all(f["advice"] for name in ("route", "switched_off") for f in found[name])


@pytest.mark.parametrize(("version", "level"), [
    ("1.99.0", "fails"), ("1.107.0", "fails"), ("2.0.0", "fails"), ("1.100.0", "ok"), ("1.106.2", "ok"),
])  # fmt: skip
def test_a_litellm_that_is_not_supported_fails(version, level):
    finding = versions_finding(version)
    assert finding.level == level
    assert ("pip install 'litellm[proxy]" in finding.advice) == (level == "fails")


class TestRedis:
    def test_one_that_runs_scripts_is_fine(self, told, tmp_path):
        with RedisProcess() as server:
            router = {"redis_host": "127.0.0.1", "redis_port": server.port}
            code, found = told(
                "--no-proxy", written(tmp_path, router_settings=router, litellm_settings={"callbacks": [CALLBACK]})
            )
        assert found["redis"][0]["level"] == "ok"
        assert code == 0

    @pytest.mark.parametrize(
        "router", [{"redis_host": "127.0.0.1", "redis_port": 1}, {"redis_url": "http://cache"}], ids=str
    )
    def test_one_that_nobody_answers_for_or_an_address_that_is_none_fails(self, router, told, tmp_path):
        code, found = told("--no-proxy", written(tmp_path, router_settings=router))
        assert code == 1
        assert found["redis"][0]["level"] == "fails"


def test_mistakes_and_weak_spots_of_a_configuration_are_findings(told, tmp_path):
    settings = {"ctx_hooks": {"teams": {"red": {"langage": "en"}}}}
    code, found = told("--no-proxy", written(tmp_path, callback_settings=settings))
    assert code == 1
    assert "did you mean 'language'" in found["mistake"][0]["text"]
    assert {name: found[name][0]["level"] for name in ("not_registered", "cancel_on_disconnect")} == {
        "not_registered": "fails",
        "cancel_on_disconnect": "weak",
    }


def test_weak_spots_alone_are_no_failure_and_not_called_sound(told, capsys, tmp_path):
    path = written(tmp_path, litellm_settings={"callbacks": [CALLBACK]})
    code, found = told("--no-proxy", path)
    assert found["cancel_on_disconnect"][0]["level"] == "weak"
    assert code == 0
    assert main(["doctor", "--no-proxy", path]) == 0
    assert capsys.readouterr().out.endswith("\nNo check fails.\n")
