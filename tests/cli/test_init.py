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
    "a list with a comma": "litellm_settings:\n  callbacks: [prometheus, ]\n",
    "an empty list": "litellm_settings:\n  callbacks: []\n  drop_params: true\n",
    "a list of lines": "litellm_settings:\n  callbacks:\n  - prometheus  # figures\n  - otel\n\n# rest\nmodel_list: []\n",
    "an indented list": "litellm_settings:\n  callbacks:\n    - prometheus\n  drop_params: true",
    "one name": "litellm_settings:\n  callbacks: prometheus\n",
    "no name": "litellm_settings:\n  callbacks:\n  drop_params: true\n",
    "Windows": "litellm_settings:\r\n  drop_params: true\r\nmodel_list: []\r\n",
    "settings of others": "callback_settings:\n  otel: {x: 1}  # theirs\nlitellm_settings:\n  callbacks: [otel]\n",
}


@pytest.fixture
def config(tmp_path):
    return tmp_path / "config.yaml"


def write(path, text: str) -> None:
    path.write_bytes(text.encode())


@pytest.mark.parametrize("observe", [(), ("--observe",)], ids=["enforce", "observe"])
@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_the_plugin_is_added_once_and_comments_stay(text, observe, config, capsys):
    write(config, text)
    assert main(["init", str(config), "--yes", *observe]) == 0, capsys.readouterr().err
    written = config.read_bytes().decode()
    before, after = yaml.safe_load(text) or {}, yaml.safe_load(written)
    names = (before.get("litellm_settings") or {}).get("callbacks") or []
    assert after["litellm_settings"].pop("callbacks") == [*([names] if isinstance(names, str) else names), PLUGIN]
    assert (after.get("callback_settings") or {}).pop("ctx_hooks", None) == (
        {"defaults": {"mode": "observe"}} if observe else None
    )
    (before.get("litellm_settings") or {}).pop("callbacks", None)
    assert {k: v for k, v in after.items() if v} == {k: v for k, v in before.items() if v}
    assert [
        c for c in ("# ours", "# why", "# mine", "# figures", "# rest", "# theirs") if c in text and c not in written
    ] == []
    assert configuration_of(yaml.safe_load(written)).mistakes == ()
    assert main(["init", str(config), "--yes", *observe]) == 0
    assert config.read_bytes().decode() == written


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "byte order mark"])
def test_init_keeps_line_ends_and_byte_order_mark(mark, config):
    before = f"{mark}{LAYOUTS['Windows']}".encode()
    config.write_bytes(before)
    assert main(["init", str(config), "--yes"]) == 0
    added = config.read_bytes()
    assert (added.startswith(mark.encode()), added.count(b"\n")) == (True, added.count(b"\r\n"))
    assert PLUGIN in yaml.safe_load(added.decode("utf-8-sig"))["litellm_settings"]["callbacks"]


@pytest.mark.parametrize(
    "text",
    [
        "litellm_settings: null\n",
        "x: &all [otel]\nlitellm_settings:\n  callbacks: *all\n",
        "{model_list: []}",
        "litellm_settings: {callbacks: otel}\n---\n{}",
        "litellm_settings:\n  callbacks: otel\n  callbacks: [x]\n",
    ],
)
def test_a_layout_that_cannot_be_edited_is_left_alone(text, config, capsys):
    write(config, text)
    assert main(["init", str(config), "--yes"]) == 2
    assert config.read_text() == text
    assert "Error" in capsys.readouterr().err


def test_nothing_is_written_unless_it_is_confirmed(config, capsys):
    write(config, LAYOUTS["a section"])
    assert main(["init", str(config)]) == 2
    assert "+  callbacks:" in capsys.readouterr().out
    assert main(["init", str(config), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["written"] is False
    assert PLUGIN in shown["difference"]
    assert config.read_text() == LAYOUTS["a section"]


@pytest.mark.parametrize("settings", ["", "{}", "{teams: {a: {mode: observe}}}"])
def test_observe_never_adds_a_plugin_that_enforces(settings, config, capsys):
    write(config, text := f"callback_settings:\n  ctx_hooks: {settings}\n")
    assert main(["init", str(config), "--observe", "--yes"]) == 2
    assert config.read_text() == text
    assert "mode: observe" in capsys.readouterr().err
    write(config, "callback_settings:\n  ctx_hooks: {defaults: observe}\n")
    assert main(["init", str(config), "--observe", "--yes"]) == 0
    assert PLUGIN in config.read_text()


def test_events_are_added_with_new_settings_and_asked_for_beside_others(config, capsys):
    write(config, LAYOUTS["a section"])
    arguments = ["init", str(config), "--observe", "--events", "a: #folder", "--yes"]
    assert main(arguments) == 0
    assert configuration_of(yaml.safe_load(config.read_text())).settings.events.path == "a: #folder"
    assert "the folder a: #folder exists where the proxy runs" in capsys.readouterr().out
    assert main(arguments) == 0
    for own in ("{defaults: observe}", "{defaults: observe, events: {path: elsewhere}}"):
        write(config, text := f"callback_settings:\n  ctx_hooks: {own}\n")
        assert main(arguments) == 2
        assert config.read_text() == text
        assert "write `events:" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["litellm_settings: [a]\n", "litellm_settings: a\n", "callback_settings: [a]\n"])
def test_a_section_that_is_no_mapping_is_an_error_in_a_line(text, config, capsys):
    write(config, text)
    assert main(["init", str(config), "--observe", "--yes"]) == 2
    assert "has to be a mapping" in capsys.readouterr().err
