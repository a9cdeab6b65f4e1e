"""What keeps the plugin from its work, or makes it work worse than it could, is found in a configuration."""

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctx_hooks import cli
from ctx_hooks.cli.check import weak_spots
from ctx_hooks.cli.configuration import PLUGIN, configuration_of

SOUND: dict[str, Any] = {
    "model_list": [{"model_name": "gpt", "litellm_params": {"model": "openai/gpt-4o"}}],
    "litellm_settings": {"callbacks": [PLUGIN]},
    "general_settings": {"cancel_on_disconnect": True},
}


def found(**sections):
    return {finding.name: finding for finding in weak_spots(configuration_of({**SOUND, **sections}))}


def model(group, name, info=None, **params):
    return {"model_name": group, "litellm_params": {"model": name, **params}, "model_info": info or {}}


def policy(**fields):
    return {"ctx_hooks": {"defaults": fields}}


def test_uncalled_plugin_fails():
    named = ["langfuse"], ["ctx_hooks"], 7
    for settings in (*({"callbacks": names} for names in named), {"success_callback": [PLUGIN]}):
        finding = found(litellm_settings=settings)["not_registered"]
        assert (finding.level, PLUGIN in finding.advice) == ("fails", True)
        assert ("langfuse" in finding.advice) == (settings.get("callbacks") == ["langfuse"])
        assert ("no effect" in finding.text) == ("success_callback" in settings)


@pytest.mark.parametrize("key", ["callbacks", "failure_callback"])
def test_metrics_without_their_client_fail(key, monkeypatch):
    settings = {"callbacks": [PLUGIN]}
    settings[key] = [*settings.get(key, []), "prometheus"]
    assert found(litellm_settings=settings) == {}
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    monkeypatch.setattr(sys, "meta_path", [])  # as where the package is not installed
    assert found(litellm_settings=settings)["metrics_client"].level == "fails"


SMALL = {"max_input_tokens": 40_000}
UNKNOWN = [model("own", "openai/own-model")]
TINY = [model("own", "openai/own-model", {"max_input_tokens": 8_000})]
MISSPELT = {"default_key_generate_params": {"metadata": {"ctx-hooks": "off"}}}
HEADROOM = {"guardrail_name": "small", "litellm_params": {"guardrail": "headroom", "mode": "pre_call"}}
WEAK = [
    ({"model_list": [model("gpt", "openai/gpt-4o", {"ctx_hook": "off"})]}, "misspelt", "fails", "mean 'ctx_hooks'?"),
    ({"litellm_settings": {"callbacks": PLUGIN, **MISSPELT}}, "misspelt", "fails", "mean 'ctx_hooks'?"),
    ({"model_list": UNKNOWN}, "window_unknown", "weak", "own (openai/own-model)"),
    ({"model_list": TINY}, "window_small", "note", ""),
    ({"model_list": TINY, "callback_settings": policy(block_below_tokens=8_001)}, "window_blocked", "weak", "8,000"),
    ({"model_list": UNKNOWN, "callback_settings": policy(reserve=32_768)}, "reserve_replaced", "note", "becomes 32,000 in"),
    ({"model_list": TINY, "callback_settings": policy(reserve="dynamic")}, "reserve_replaced", "note", "32,768 becomes"),
    ({"litellm_settings": {"callbacks": [PLUGIN, "compression_interception"]}}, "other_compressor", "weak", ""),
    ({"guardrails": [HEADROOM]}, "other_compressor", "weak", ""),
    ({"router_settings": {"enable_pre_call_checks": True}}, "pre_call_checks", "note", ""),
    ({"general_settings": {}}, "cancel_on_disconnect", "weak", ""),
    ({"callback_settings": policy(summary={"model": "gtp"})}, "summary_model", "fails", "mean 'gpt'?"),
    ({"callback_settings": policy(archive={"backend": "redis"})}, "archive_redis", "fails", "no Redis"),
    ({"model_list": [model("gpt", "openai/gpt-4o", max_input_tokens=9_000)]}, "window_misplaced", "weak", "litellm_params"),
    ({"model_list": [model("gpt", "openai/gpt-4o", {"max_tokens": 9_000})]}, "window_misplaced", "weak", "max_tokens"),
    ({"callback_settings": {"ctx_hooks": {"events": {"path": "n" * 300}}}}, "events_folder", "weak", ""),  # no such name
]  # fmt: skip
REDIS = {"callback_settings": policy(archive={"backend": "redis"}), "router_settings": {"redis_host": "localhost"}}
NOT_WEAK = {
    "a sound configuration": {},
    "a window that is stated": {"model_list": [model("own", "openai/own-model", SMALL)]},
    "a wildcard's window": {"model_list": [model("*", "openai/*")]},
    "a window of the policy": {"model_list": UNKNOWN, "callback_settings": policy(window_tokens=40_000)},
    "a small window that the policy knows": {"model_list": TINY, "callback_settings": policy(block_below_tokens=0)},
    "an archive with a Redis": REDIS,
    "a reserve that holds": {"model_list": [model("gpt", "openai/gpt-4o")], "callback_settings": policy(reserve=32_000)},
}


@pytest.mark.parametrize(("sections", "name", "level", "words"), WEAK, ids=[name for _, name, _, _ in WEAK])
def test_weak_spot_has_its_level(sections, name, level, words):
    finding = found(**sections)[name]
    assert finding.level == level
    assert words in finding.text


@pytest.mark.parametrize("sections", NOT_WEAK.values(), ids=NOT_WEAK)
def test_sound_setting_is_no_finding(sections):
    assert found(**sections) == {}


def test_worst_finding_comes_first():
    found = weak_spots(configuration_of({"router_settings": {"enable_pre_call_checks": True}}))
    assert [each.level for each in found] == ["fails", "weak", "note"]


SECTIONS = ("model_list", "litellm_settings", "router_settings", "general_settings", "guardrails", "callback_settings")


@pytest.mark.parametrize("section", SECTIONS)
def test_section_of_another_type_is_no_crash(section):
    itself: list[Any] = []
    itself.append(itself)
    for value in (None, 7, "text", [], [7], {"a": 7}, itself):
        found(**{section: value})


def test_no_finding_is_unused():
    folder = Path(cli.__file__).parent
    words = yaml.safe_load((folder / "findings.yaml").read_text(encoding="utf-8"))
    code = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    assert [key for key in words if f'"{key}"' not in code] == []


TWO = [model("small", "openai/ours", {"max_input_tokens": 12_000}), model("big", "openai/gpt-4o")]


@pytest.mark.parametrize(("section", "stated"), [
    ("router_settings", {"context_window_fallbacks": [{"small": ["big"]}]}),
    ("router_settings", {"fallbacks": [{"*": ["big"]}]}), ("litellm_settings", {"default_fallbacks": ["big"]}),
    ("litellm_settings", {"fallbacks": [{"small": [{"model": "big"}]}]}),
])  # fmt: skip
def test_group_with_fallbacks_says_which_comes_first(section, stated):
    sections = {section: {**SOUND.get(section, {}), **stated}}
    assert "big that fits it" in found(model_list=TWO, **sections)["fallbacks_first"].text
    last = found(model_list=TWO, callback_settings=policy(fallbacks="last"), **sections)
    assert "asks big only" in last["fallbacks_last"].text
    assert not {"fallbacks_first", "fallbacks_last"} & found(model_list=TWO).keys()
