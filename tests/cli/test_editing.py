"""Commands that change a configuration: `init` adds the plugin, `check --probe` the windows of servers; the rest stays."""

import json

import pytest
import yaml
from answering_server import answering
from fastapi import Request
from fastapi.responses import JSONResponse

from ctx_hooks.cli import main
from ctx_hooks.cli.configuration import PLUGIN, configuration_of
from ctx_hooks.cli.editing import edited

LAYOUTS = {
    "empty": "",
    "no section": "model_list: []  # mine\n",
    "a section": "litellm_settings:  # ours\n  # why\n  drop_params: true\n",
    "an empty section": "litellm_settings:\nmodel_list: []\n",
    "a section in one line": "litellm_settings: {drop_params: true}\n",
    "a list": 'litellm_settings:\n  callbacks: ["prometheus"]  # figures\n  drop_params: true\n',
    "a list of lines": "litellm_settings:\n  callbacks:\n  - prometheus  # figures\n  - otel\n\n# rest\nmodel_list: []\n",
    "one name": "litellm_settings:\n  callbacks: prometheus\n",
    "Windows": "\ufefflitellm_settings:\r\n  drop_params: true\r\nmodel_list: []\r\n",
    "settings of others": "callback_settings:\n  otel: {x: 1}  # theirs\nlitellm_settings:\n  callbacks: [otel]\n",
}
COMMENTS = ("# ours", "# why", "# mine", "# figures", "# rest", "# theirs")


@pytest.fixture
def config(tmp_path):
    return tmp_path / "config.yaml"


@pytest.mark.parametrize("options", [(), ("--observe", "--dashboard")], ids=["enforce", "observe"])
@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_plugin_is_added_once_and_comments_stay(text, options, config, capsys):
    config.write_bytes(text.encode())
    assert main(["init", str(config), "--yes", *options]) == 0, capsys.readouterr().err
    written = config.read_bytes().decode()
    before, after = yaml.safe_load(text) or {}, yaml.safe_load(written)
    assert configuration_of(after).mistakes == ()
    names = (before.get("litellm_settings") or {}).pop("callbacks", None) or []
    assert after["litellm_settings"].pop("callbacks") == [*([names] if isinstance(names, str) else names), PLUGIN]
    added = (after.get("callback_settings") or {}).pop("ctx_hooks", None)
    assert added == {"defaults": {**({"mode": "observe"} if options else {}), "compaction_api": True}}
    plugins = (after.get("general_settings") or {}).pop("plugins", [])
    assert [plugin["url"] for plugin in plugins] == ["http://localhost:4100"] * bool(options)
    assert {k: v for k, v in after.items() if v} == {k: v for k, v in before.items() if v}
    assert [comment for comment in COMMENTS if comment in text and comment not in written] == []
    assert "\r\n" not in text or written.count("\n") == written.count("\r\n")
    assert main(["init", str(config), "--yes", *options]) == 0
    assert config.read_bytes().decode() == written


@pytest.mark.parametrize("text", [
        "litellm_settings: null\n", "{model_list: []}", "litellm_settings: [a]\n", "callback_settings: a\n",
        "x: &all [otel]\nlitellm_settings:\n  callbacks: *all\n", "litellm_settings: {callbacks: otel}\n---\n{}",
        "litellm_settings:\n  callbacks: otel\n  callbacks: [x]\n",
])  # fmt: skip
def test_layout_that_cannot_be_edited_stays(text, config, capsys):
    config.write_text(text)
    assert main(["init", str(config), "--yes"]) == 2
    assert config.read_text() == text
    assert "Error" in capsys.readouterr().err


def test_nothing_is_written_without_confirmation(config, capsys):
    config.write_text(LAYOUTS["a section"])
    assert main(["init", str(config)]) == 2
    assert "+  callbacks:" in capsys.readouterr().out
    assert config.read_text() == LAYOUTS["a section"]


def test_observe_never_adds_a_plugin_that_enforces(config, capsys):
    for settings in ("", "{}", "{teams: {a: {mode: observe}}}"):
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
    assert main(arguments) == 0
    for own in ("{defaults: observe}", "{defaults: observe, events: {path: elsewhere}}"):
        config.write_text(text := f"callback_settings:\n  ctx_hooks: {own}\n")
        assert main(arguments) == 2
        assert config.read_text() == text
        assert "write `events:" in capsys.readouterr().err


MODEL = "qwen"
SHOWN = {"model_info": {"qwen.context_length": 131_072}}
CARDS = [{"id": "other", "max_model_len": 9}, {"id": MODEL, "max_model_len": 32_768}]
LISTED = {"data": [{"id": MODEL}]}
SERVERS = {
    "vllm": ({"/v1/models": {"data": CARDS}}, 32_768),
    "sglang": ({"/v1/models": {"data": [{"id": "path/to/it", "max_model_len": 40_960}]}}, 40_960),
    "llama.cpp": ({"/v1/models": LISTED, "/props": {"default_generation_settings": {"n_ctx": 8_192}}}, 8_192),
    "ollama loaded": ({"/api/ps": {"models": [{"name": MODEL, "context_length": 16_384}]}, "/api/show": SHOWN}, 16_384),
    "ollama set": ({"/api/show": {**SHOWN, "parameters": "stop <|end|>\nnum_ctx   24000"}}, 24_000),
    "ollama": ({"/v1/models": LISTED, "/api/show": SHOWN}, None),
    "tgi": ({"/info": {"max_input_tokens": 4_095, "max_total_tokens": 4_096}}, 4_095),
    "other": ({}, None),
    "odd": ({"/v1/models": ["no", "mapping"], "/props": 7, "/info": {"max_input_tokens": "4095"}}, None),
}
CONFIGURATION = """\
model_list:
  - model_name: local  # ours
    litellm_params: {{model: hosted_vllm/qwen, api_base: {url}/v1, api_key: os.environ/NOT_SET}}
    model_info:
      mode: chat  # stays
  - model_name: hosted
    litellm_params:
      model: anthropic/claude-sonnet-4-5
"""


def served(answers):
    async def answer(request: Request) -> JSONResponse:
        found = answers.get(request.url.path)
        return JSONResponse(found, 404 if found is None else 200)

    return answering(answer, "GET")


def probe(config, url, *options):
    config.write_text(CONFIGURATION.format(url=url))
    return main(["check", str(config), "--probe", *options, "--json"])


@pytest.mark.parametrize(("answers", "window"), SERVERS.values(), ids=SERVERS)
def test_server_states_its_window(answers, window, config, capsys):
    with served(answers) as url:
        probe(config, url)
    (row,) = json.loads(capsys.readouterr().out)["probed"]
    assert (row["model_group"], row["window_tokens"]) == ("local", window)


def test_window_is_written_on_request(config, capsys):
    answers, window = SERVERS["vllm"]
    with served(answers) as url:
        probe(config, url)
        assert "max_input_tokens" not in config.read_text()
        probe(config, url, "--write", "--yes")
    expected = CONFIGURATION.format(url=url).replace("      mode:", f"      max_input_tokens: {window}\n      mode:")
    assert config.read_text() == expected
    assert capsys.readouterr().out


LINE = "max_input_tokens: 9"


@pytest.mark.parametrize(("before", "after"), [
    ("[{model_name: a}]", f"[{{model_info: {{{LINE}}}, model_name: a}}]"),
    ("\n- model_name: a", f"\n- model_info: {{{LINE}}}\n  model_name: a"),
    ("\n- model_name: a\n  model_info: {mode: chat}", f"\n- model_name: a\n  model_info: {{{LINE}, mode: chat}}"),
    ("\n- model_name: a\n  model_info: {max_input_tokens: 8}", f"\n- model_name: a\n  model_info: {{{LINE}}}"),
])  # fmt: skip
def test_layout_stays(before, after):
    path = ("model_list", 0, "model_info", "max_input_tokens")
    assert edited(f"model_list: {before}\n", {path: 9}) == f"model_list: {after}\n"
