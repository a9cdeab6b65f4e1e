"""`ctx-hooks doctor` says what keeps the plugin from working in this installation, and what could be better."""

import json

import pytest
import yaml
from redis_process import RedisProcess

from ctx_hooks.cli import main
from ctx_hooks.cli.doctor import versions_finding
from ctx_hooks.cli.weak_spots import CALLBACK


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "CTX_HOOKS_ENABLED"):
        monkeypatch.delenv(name, raising=False)


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


def test_an_installation_that_works_has_no_failing_check(told):
    code, found = told()
    assert [f["level"] for name in ("versions", "vocabularies", "seam") for f in found[name]] == ["ok"] * 3
    assert found["redis"][0]["level"] == "note"
    assert code == 0


def test_a_plugin_that_is_off_is_found(told, monkeypatch):
    monkeypatch.setenv("CTX_HOOKS_ENABLED", "0")
    code, found = told()
    assert code == 1
    assert found["switched_off"][0]["level"] == "fails"
    assert found["switched_off"][0]["advice"]


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
            code, found = told(written(tmp_path, router_settings=router, litellm_settings={"callbacks": [CALLBACK]}))
        assert found["redis"][0]["level"] == "ok"
        assert code == 0

    @pytest.mark.parametrize(
        "router", [{"redis_host": "127.0.0.1", "redis_port": 1}, {"redis_url": "http://cache"}], ids=str
    )
    def test_one_that_nobody_answers_for_or_an_address_that_is_none_fails(self, router, told, tmp_path):
        code, found = told(written(tmp_path, router_settings=router))
        assert code == 1
        assert found["redis"][0]["level"] == "fails"


def test_mistakes_and_weak_spots_of_a_configuration_are_findings(told, tmp_path):
    settings = {"ctx_hooks": {"teams": {"red": {"langage": "en"}}}}
    code, found = told(written(tmp_path, callback_settings=settings))
    assert code == 1
    assert "did you mean 'language'" in found["mistake"][0]["text"]
    assert {name: found[name][0]["level"] for name in ("not_registered", "cancel_on_disconnect")} == {
        "not_registered": "fails",
        "cancel_on_disconnect": "weak",
    }


def test_weak_spots_alone_are_no_failure_and_not_called_sound(told, capsys, tmp_path):
    path = written(tmp_path, litellm_settings={"callbacks": [CALLBACK]})
    code, found = told(path)
    assert found["cancel_on_disconnect"][0]["level"] == "weak"
    assert code == 0
    assert main(["doctor", path]) == 0
    assert capsys.readouterr().out.endswith("\nNo check fails.\n")
