"""`check --probe`: what vLLM, SGLang, llama.cpp, Ollama and TGI say of their window, from servers on loopback."""

import json

import pytest
from answering_server import answering
from fastapi import Request
from fastapi.responses import JSONResponse

from ctx_hooks.cli import main
from ctx_hooks.cli.editing import edited

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
    "silent": ({"/v1/models": LISTED}, None),
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


@pytest.fixture
def config(tmp_path):
    return tmp_path / "config.yaml"


def probe(config, url, *options):
    config.write_text(CONFIGURATION.format(url=url))
    return main(["check", str(config), "--probe", *options, "--json"])


@pytest.mark.parametrize(("answers", "window"), SERVERS.values(), ids=SERVERS)
def test_server_states_its_window(answers, window, config, capsys):
    async def answer(request: Request) -> JSONResponse:
        found = answers.get(request.url.path)
        return JSONResponse(found, 404 if found is None else 200)

    with answering(answer, "GET") as url:
        probe(config, url)
    (row,) = json.loads(capsys.readouterr().out)["probed"]
    assert (row["model_group"], row["window_tokens"]) == ("local", window)
    assert (row["said_by"] == "no answer") == (answers == {})


def test_window_is_written_on_request(config, capsys):
    answers, window = SERVERS["vllm"]

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(answers[request.url.path])

    with answering(answer, "GET") as url:
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
