"""What keeps the plugin from its work, or makes it work worse than it could, is found in a configuration."""

import ast
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from ctx_hooks import cli
from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.cli.weak_spots import CALLBACK, weak_spots

SOUND: dict[str, Any] = {
    "model_list": [{"model_name": "gpt", "litellm_params": {"model": "openai/gpt-4o"}}],
    "litellm_settings": {"callbacks": [CALLBACK]},
    "general_settings": {"cancel_on_disconnect": True},
}


def found(**sections):
    return {finding.name: finding for finding in weak_spots(configuration_of({**SOUND, **sections}))}


def model(group, name, info=None, **params):
    return {"model_name": group, "litellm_params": {"model": name, **params}, "model_info": info or {}}


def policy(**fields):
    return {"ctx_hooks": {"defaults": fields}}


def test_a_sound_configuration_has_none():
    assert found() == {}


@pytest.mark.parametrize(
    "settings",
    [{}, {"callbacks": ["langfuse"]}, {"callbacks": ["ctx_hooks"]}, {"success_callback": [CALLBACK]}, {"callbacks": 7}],
)
def test_a_plugin_that_litellm_does_not_call_fails(settings):
    finding = found(litellm_settings=settings)["not_registered"]
    assert finding.level == "fails"
    assert CALLBACK in finding.advice


def test_one_callback_may_stand_without_a_list():
    assert found(litellm_settings={"callbacks": CALLBACK}) == {}


class TestStart:
    """What keeps LiteLLM from starting here is found without starting it."""

    @pytest.mark.parametrize("name", ["no_such_module.handler", "yaml.no_such_module.handler", "failing_package.a.handler"])
    def test_a_callback_that_is_not_here_fails(self, name, tmp_path, monkeypatch):
        (tmp_path / "failing_package.py").write_text("raise RuntimeError")
        monkeypatch.syspath_prepend(tmp_path)
        for sections in ({"litellm_settings": {"callbacks": [CALLBACK, name]}}, {"general_settings": {"custom_auth": name}}):
            finding = found(**sections)["callback_missing"]
            assert finding.level == "fails"
            assert name.rpartition(".")[0] in finding.text

    def test_one_that_is_beside_the_file_installed_or_litellms_own_is_not(self, tmp_path):
        (tmp_path / "own").mkdir()
        (tmp_path / "own" / "callbacks.py").write_text("raise RuntimeError('is not imported')")
        names = [CALLBACK, "own.callbacks.handler", "json.dumps", "langfuse", "s3://bucket/module.handler"]
        config = configuration_of({**SOUND, "litellm_settings": {"callbacks": names}})
        assert weak_spots(replace(config, folder=tmp_path)) == ()

    def test_a_variable_that_is_not_set_is_weak(self, monkeypatch):
        monkeypatch.delenv("NO_SUCH_KEY", raising=False)
        sections = {"model_list": [model("gpt", "openai/gpt-4o", api_key="os.environ/NO_SUCH_KEY")]}
        finding = found(**sections)["variable_unset"]
        assert finding.level == "weak"
        assert finding.text == "NO_SUCH_KEY is not set here: model_list.0.litellm_params.api_key"
        assert found(**sections, environment_variables={"NO_SUCH_KEY": "secret"}) == {}
        manager = {**SOUND["general_settings"], "key_management_system": "aws_secret_manager"}
        assert found(**sections, general_settings=manager) == {}
        monkeypatch.setenv("NO_SUCH_KEY", "secret")
        assert found(**sections) == {}

    def test_a_configuration_that_holds_itself_is_read(self):
        itself: list[Any] = []
        itself.append(itself)
        assert found(general_settings={**SOUND["general_settings"], "itself": itself}) == {}


@pytest.mark.parametrize("sections", [
    {"model_list": [model("gpt", "openai/gpt-4o", {"ctx_hook": {"mode": "off"}})]},
    {"litellm_settings": {**SOUND["litellm_settings"], "default_key_generate_params": {"metadata": {"ctx-hooks": "off"}}}},
])  # fmt: skip
def test_settings_under_a_misspelt_name_fail(sections):
    finding = found(**sections)["misspelt"]
    assert finding.level == "fails"
    assert "did you mean 'ctx_hooks'?" in finding.text


class TestWindows:
    def test_one_that_nobody_states_is_weak(self):
        finding = found(model_list=[model("own", "openai/own-model")])["window_unknown"]
        assert finding.level == "weak"
        assert "own (openai/own-model)" in finding.text

    @pytest.mark.parametrize(
        "listed",
        [model("own", "openai/own-model", {"max_input_tokens": 40_000}), model("*", "openai/*")],
        ids=["own", "all"],
    )
    def test_one_that_is_stated_or_a_wildcards_is_not(self, listed):
        assert found(model_list=[listed]) == {}

    def test_a_policy_states_one_too(self):
        listed = [model("own", "openai/own-model")]
        assert found(model_list=listed, callback_settings=policy(window_tokens=40_000)) == {}

    def test_a_small_one_is_noted_until_the_policy_knows(self):
        listed = [model("own", "openai/own-model", {"max_input_tokens": 8_000})]
        assert found(model_list=listed)["window_small"].level == "note"
        assert found(model_list=listed, callback_settings=policy(warn_below_tokens=8_000)) == {}


@pytest.mark.parametrize(
    "sections",
    [
        {"litellm_settings": {"callbacks": [CALLBACK, "compression_interception"]}},
        {"guardrails": [{"guardrail_name": "small", "litellm_params": {"guardrail": "headroom", "mode": "pre_call"}}]},
    ],
)
def test_another_compressor_is_weak(sections):
    assert found(**sections)["other_compressor"].level == "weak"


def test_pre_call_checks_are_noted():
    assert found(router_settings={"enable_pre_call_checks": True})["pre_call_checks"].level == "note"


@pytest.mark.parametrize("settings", [{}, {"cancel_on_disconnect": False}])
def test_calls_that_outlive_their_client_are_weak(settings):
    assert found(general_settings=settings)["cancel_on_disconnect"].level == "weak"


class TestOrders:
    SMALL_FIRST = (
        model("both", "openai/a", {"max_input_tokens": 40_000}, order=1),
        model("both", "openai/b", {"max_input_tokens": 200_000}, order=2),
    )

    def test_a_smaller_window_in_front_is_weak(self):
        finding = found(model_list=list(self.SMALL_FIRST))["order"]
        assert finding.level == "weak"
        assert "40,000" in finding.text
        assert "200,000" in finding.text

    def test_not_where_the_policy_prefers_what_holds_the_request(self):
        assert found(model_list=list(self.SMALL_FIRST), callback_settings=policy(deployment_choice="holds_request")) == {}

    def test_nor_where_the_larger_is_in_front(self):
        listed = [
            model("both", "openai/a", {"max_input_tokens": 40_000}, order=2),
            model("both", "openai/b", {"max_input_tokens": 200_000}, order=1),
        ]
        assert found(model_list=listed) == {}


class TestRetries:
    def test_those_of_the_router_hold_for_each_attempt(self):
        finding = found(router_settings={"num_retries": 2})["retries_multiply"]
        assert finding.level == "note"
        assert "12 times" in finding.text, "three for each of the first attempt and three retries"

    def test_not_where_nothing_is_retried(self):
        sections = {"router_settings": {"num_retries": 2}, "callback_settings": policy(rescue_attempts=0)}
        assert found(**sections) == {}

    @pytest.mark.parametrize(
        "settings",
        [
            {"retry_policy": {"BadRequestErrorRetries": 2}},
            {"model_group_retry_policy": {"gpt": {"BadRequestErrorRetries": 2}}},
        ],
    )
    def test_those_of_refused_requests_are_weak(self, settings):
        assert found(router_settings=settings)["bad_request_retries"].level == "weak"
        assert found(router_settings={"retry_policy": {"TimeoutErrorRetries": 2}}) == {}


def test_a_folder_of_events_that_is_not_there_is_weak(tmp_path):
    assert found(callback_settings={"ctx_hooks": {"events": {"path": str(tmp_path)}}}) == {}
    missing = str(tmp_path / "none")
    assert found(callback_settings={"ctx_hooks": {"events": {"path": missing}}})["events_folder"].level == "weak"
    assert "events_folder" in found(callback_settings={"ctx_hooks": {"events": {"path": "n" * 300}}}), (
        "no folder has such a name"
    )


def test_the_worst_comes_first():
    levels = [f.level for f in weak_spots(configuration_of({"router_settings": {"enable_pre_call_checks": True}}))]
    assert levels == ["fails", "weak", "note"]


@pytest.mark.parametrize("value", [None, 7, "text", [], [7], {"a": 7}])
@pytest.mark.parametrize(
    "section", ["model_list", "litellm_settings", "router_settings", "general_settings", "guardrails", "callback_settings"]
)
def test_a_section_of_another_type_is_no_crash(section, value):
    found(**{section: value})


def test_the_words_of_each_finding_are_there_and_have_the_values_that_they_ask_for():
    folder = Path(cli.__file__).parent
    words = yaml.safe_load((folder / "findings.yaml").read_text(encoding="utf-8"))
    calls = [
        node for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)
    ]
    made = {}
    for call in (call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "finding"):
        keys = [node.value for node in ast.walk(call.args[0]) if isinstance(node, ast.Constant) and node.value in words]
        assert keys, ast.unparse(call)
        for key in keys:
            made[key] = call
            asked = {name for part in ("text", "advice") for name in Template(words[key].get(part, "")).get_identifiers()}
            assert asked <= {keyword.arg for keyword in call.keywords}, key
    assert made.keys() == words.keys()
