"""`ctx-hooks init`: whatever a configuration looks like, the plugin is added, and nothing else changes."""

import json

import pytest
import yaml

from ctx_hooks.cli import main
from ctx_hooks.cli.configuration import PLUGIN, configuration_of

LAYOUTS = {
    "empty": "",
    "no section": "model_list: []  # mine\n",
    "no newline at the end": "model_list: []",
    "a section": "litellm_settings:  # ours\n  # why\n  drop_params: true\n",
    "a wide indent": "litellm_settings:\n      drop_params: true\nmodel_list: []\n",
    "an empty section": "litellm_settings:\nmodel_list: []\n",
    "a section in one line": "litellm_settings: {drop_params: true}\n",
    "a list": 'litellm_settings:\n  callbacks: ["prometheus"]  # figures\n  drop_params: true\n',
    "an empty list": "litellm_settings:\n  callbacks: []\n  drop_params: true\n",
    "a list of lines": "litellm_settings:\n  callbacks:\n  - prometheus  # figures\n  - otel\n\n# rest\nmodel_list: []\n",
    "an indented list": "litellm_settings:\n  callbacks:\n    - prometheus\n  drop_params: true",
    "one name": "litellm_settings:\n  callbacks: prometheus\n",
    "no name": "litellm_settings:\n  callbacks:\n  drop_params: true\n",
    "Windows": "\ufefflitellm_settings:\r\n  drop_params: true\r\nmodel_list: []\r\n",
    "settings of others": "callback_settings:\n  otel: {x: 1}  # theirs\nlitellm_settings:\n  callbacks: [otel]\n",
}
COMMENTS = ("# ours", "# why", "# mine", "# figures", "# rest", "# theirs")


@pytest.fixture
def config(tmp_path):
    return tmp_path / "config.yaml"


@pytest.mark.parametrize("observe", [(), ("--observe",)], ids=["enforce", "observe"])
@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_plugin_is_added_once_and_comments_stay(text, observe, config, capsys):
    config.write_bytes(text.encode())
    assert main(["init", str(config), "--yes", *observe]) == 0, capsys.readouterr().err
    written = config.read_bytes().decode()
    before, after = yaml.safe_load(text) or {}, yaml.safe_load(written)
    assert configuration_of(after).mistakes == ()
    names = (before.get("litellm_settings") or {}).pop("callbacks", None) or []
    assert after["litellm_settings"].pop("callbacks") == [*([names] if isinstance(names, str) else names), PLUGIN]
    added = (after.get("callback_settings") or {}).pop("ctx_hooks", None)
    assert added == ({"defaults": {"mode": "observe"}} if observe else None)
    assert {k: v for k, v in after.items() if v} == {k: v for k, v in before.items() if v}
    assert [comment for comment in COMMENTS if comment in text and comment not in written] == []
    assert written.startswith("\ufeff") == text.startswith("\ufeff")
    assert "\r\n" not in text or written.count("\n") == written.count("\r\n")
    assert main(["init", str(config), "--yes", *observe]) == 0
    assert config.read_bytes().decode() == written


@pytest.mark.parametrize(
    "text",
    [
        "litellm_settings: null\n",
        "x: &all [otel]\nlitellm_settings:\n  callbacks: *all\n",
        "{model_list: []}",
        "litellm_settings: {callbacks: otel}\n---\n{}",
        "litellm_settings:\n  callbacks: otel\n  callbacks: [x]\n",
        "litellm_settings: [a]\n",
        "callback_settings: a\n",
    ],
)
def test_layout_that_cannot_be_edited_stays(text, config, capsys):
    config.write_text(text)
    assert main(["init", str(config), "--yes"]) == 2
    assert config.read_text() == text
    assert "Error" in capsys.readouterr().err


def test_nothing_is_written_without_confirmation(config, capsys):
    config.write_text(LAYOUTS["a section"])
    assert main(["init", str(config)]) == 2
    assert "+  callbacks:" in capsys.readouterr().out
    assert main(["init", str(config), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["written"] is False
    assert PLUGIN in shown["difference"]
    assert config.read_text() == LAYOUTS["a section"]


@pytest.mark.parametrize("settings", ["", "{}", "{teams: {a: {mode: observe}}}"])
def test_observe_never_adds_a_plugin_that_enforces(settings, config, capsys):
    config.write_text(text := f"callback_settings:\n  ctx_hooks: {settings}\n")
    assert main(["init", str(config), "--observe", "--yes"]) == 2
    assert config.read_text() == text
    assert "mode: observe" in capsys.readouterr().err
    config.write_text("callback_settings:\n  ctx_hooks: {defaults: observe}\n")
    assert main(["init", str(config), "--observe", "--yes"]) == 0
    assert PLUGIN in config.read_text()


def test_events_are_added_only_with_new_settings(config, capsys):
    config.write_text(LAYOUTS["a section"])
    arguments = ["init", str(config), "--observe", "--events", "a: #folder", "--yes"]
    assert main(arguments) == 0
    assert configuration_of(yaml.safe_load(config.read_text())).settings.events.path == "a: #folder"
    assert "the folder a: #folder exists where the proxy runs" in capsys.readouterr().out
    assert main(arguments) == 0
    for own in ("{defaults: observe}", "{defaults: observe, events: {path: elsewhere}}"):
        config.write_text(text := f"callback_settings:\n  ctx_hooks: {own}\n")
        assert main(arguments) == 2
        assert config.read_text() == text
        assert "write `events:" in capsys.readouterr().err
