"""`ctx-hooks explain` says what would be done with a request, and why; nothing is sent."""

import json
from pathlib import Path

import pytest
import yaml

from ctx_hooks.cli import main
from ctx_hooks.testing import agent_session

ROOT = Path(__file__).resolve().parents[2]
LONG = agent_session("openai-chat", turns=60, result_chars=4_000)
"""Larger than the window of the project's configuration."""
HELLO = {"messages": [{"role": "user", "content": "hello"}]}
CONFIG = ["--model", "local", "--config", str(ROOT / "litellm_config.yaml")]


@pytest.fixture
def explained(tmp_path, capsys):
    """Return what is printed of a request: what JSON says, or the text. `config` are a configuration's sections."""

    def explain(request, *options, config=None, as_json=True, code=0):
        (tmp_path / "request.json").write_text(json.dumps(request))
        given = list(options)
        if config is not None:
            (tmp_path / "config.yaml").write_text(yaml.safe_dump(config))
            given += ["--config", str(tmp_path / "config.yaml")]
        assert main(["explain", str(tmp_path / "request.json"), *given, *(["--json"] if as_json else [])]) == code
        printed = capsys.readouterr()
        return printed.err if code else json.loads(printed.out) if as_json else " ".join(printed.out.split())

    return explain


def settings(**sections):
    return {"callback_settings": {"ctx_hooks": sections}}


def proxy(window=12_000, name="m", **policy):
    listed = {"model_name": name, "litellm_params": {"model": f"openai/{name}"}, "model_info": {"max_input_tokens": window}}
    return {"model_list": [listed], **settings(defaults=policy)}


def test_explain_prints_window_policy_steps_and_decision(explained):
    printed = explained(LONG, *CONFIG, as_json=False)
    for expected in (
        "local (openai/local-model): openai-chat, 123 messages",
        "window 12,000 tokens (stated by model_info) reserve 960 tokens budget 11,040 tokens",
        "tool_results: max_lines: 2000 (model_info.ctx_hooks); applies once a request is compressed",
        "compressed: ",
        "oldest_turns",
    ):
        assert expected in printed
    assert '"role": "user"' in explained(LONG, *CONFIG, "--sent", as_json=False)


def test_every_message_has_its_sizes_and_reason(explained):
    told = explained(LONG, *CONFIG)
    received, sent = LONG["messages"], explained(LONG, *CONFIG, "--sent")["messages"]
    messages = told["messages"]
    assert [m["received"] for m in messages if m["received"]] == list(range(1, len(received) + 1))
    assert [m["sent"] for m in messages if m["sent"]] == list(range(1, len(sent) + 1))
    assert {m["became"] for m in messages} >= {"kept", "changed"}
    for message in messages:
        one, other = message["received"], message["sent"]
        same = bool(one and other) and received[one - 1] == sent[other - 1]
        assert same == (message["became"] == "kept")
        assert bool(message["why"]) != same
    assert sum(m["tokens_before"] for m in messages) == pytest.approx(told["tokens_before"], rel=0.01)
    assert sum(m["tokens_after"] for m in messages) == pytest.approx(told["tokens_after"], rel=0.01)
    assert sum(step["tokens_saved"] for step in told["steps"]) == told["tokens_before"] - told["tokens_after"]
    printed = explained(LONG, *CONFIG, "--show", as_json=False)
    assert " ".join(sent[-1]["content"].split()) in printed


def test_nothing_is_written_to_an_archive(explained, tmp_path):
    archive = {"backend": "disk", "path": str(tmp_path / "kept")}
    config = settings(defaults={"window_tokens": 12_000, "archive": archive})
    assert "compressed:" in explained(LONG, "--model", "gpt-4o", config=config, as_json=False)
    assert not (tmp_path / "kept").exists()


NAMED = {"teams": {"red": {"language": "zh"}}, "keys": {"ci": {"max_turns": 7}}}


def test_policy_of_team_and_key_names_its_scopes(explained):
    arguments = ["--model", "gpt-4o", "--team", "red", "--key", "ci"]
    policy = explained(HELLO, *arguments, config=settings(**NAMED))["policy"]
    assert policy["language"] == {"value": "zh", "set_by": "teams.red"}
    assert policy["max_turns"] == {"value": 7, "set_by": "keys.ci"}
    assert policy["summary"] == {"value": None, "set_by": "default"}
    assert "language: zh (teams.red)" in explained(HELLO, *arguments, config=settings(**NAMED), as_json=False)


@pytest.mark.parametrize("option", [["--model", "nosuch"], ["--team", "rad"], ["--key", "nosuch"]], ids="".join)
def test_unknown_name_is_an_error(option, explained):
    config = {**proxy(), **settings(**NAMED)}
    told = explained({"model": "m", **HELLO}, *option, config=config, as_json=False, code=2)
    assert f"nothing for the {'model group' if option[0] == '--model' else option[0][2:]}" in told
    assert ("did you mean 'red'?" in told) == ("rad" in option)


def test_lower_output_has_its_field_and_values(explained):
    request = {"messages": [{"role": "user", "content": "hello " * 9_000}], "max_tokens": 16_000}
    told = explained(request, "--model", "m", config=proxy(16_384))
    assert told["requested_output_tokens"] == 16_000 > told["sent_output_tokens"]
    assert "requested output 16000 -> " in explained(request, "--model", "m", config=proxy(16_384), as_json=False)


@pytest.mark.parametrize("fmt", ["anthropic", "openai-responses", "gemini"])
def test_format_is_read_from_body(fmt, explained):
    told = explained(agent_session(fmt, turns=1, result_chars=100), "--model", "gpt-4o")
    assert (told["format"], told["decision"]) == (fmt, "fits")


@pytest.mark.parametrize("mode", ["off", "observe"])
def test_mode_is_named_before_the_decision(mode, explained):
    config = settings(defaults={"window_tokens": 12_000}, teams={"red": mode})
    asked = (LONG, "--model", "gpt-4o", "--team", "red")
    begins = f"Sent unchanged: mode {mode} (teams.red). With `mode: enforce`: compressed:"
    assert begins in explained(*asked, config=config, as_json=False)
    told = explained(*asked, config=config)
    assert (told["mode"], told["decision"]) == (mode, "compressed")
    assert "Sent unchanged" not in explained(LONG, "--model", "gpt-4o", config=config, as_json=False)


@pytest.mark.parametrize(("window", "policy", "fields", "decision"), [
    (500_000, {"mode": "observe"}, {}, "fallback"), (16_000, {}, {}, "compressed"),
    (500_000, {"fallbacks": "last"}, {}, "compressed"), (500_000, {}, {"disable_fallbacks": True}, "compressed"),
])  # fmt: skip
def test_fallback_that_fits_the_request_is_named(window, policy, fields, decision, explained):
    small, big = proxy(12_000, "small", **policy), proxy(window, "big")
    config = {**small, "model_list": small["model_list"] + big["model_list"]}
    config["router_settings"] = {"context_window_fallbacks": [{"small": ["big"]}]}
    told = explained({**LONG, **fields}, "--model", "small", config=config)
    assert told["decision"] == decision
    assert (told["reason"] == "big gets all of it") == (decision == "fallback")


def test_a_request_that_is_blocked_is_not_called_compressed(explained):
    config = proxy(block_below_tokens=16_000)
    assert "failed: answered 400, since its window is below `block_below_tokens` (16,000)." in explained(
        {**LONG, "model": "m"}, config=config, as_json=False
    )
    config["model_list"] += proxy(20_000)["model_list"]
    assert explained({**LONG, "model": "m"}, config=config)["decision"] == "compressed"


@pytest.mark.parametrize(("request_", "triggers"), [({**HELLO, "model": "m"}, False), ({**LONG, "model": "m"}, True)])
def test_explain_begins_with_size_and_budget(request_, triggers, explained):
    found = explained(request_, config=proxy())
    assert (found["window_tokens"], found["reserve_tokens"], found["budget_tokens"]) == (12_000, 960, 11_040)
    assert found["remaining_tokens"] == 11_040 - found["context_tokens"]
    assert found["usage_percent"] == pytest.approx(found["context_tokens"] / 120, abs=0.1)
    assert found["triggers"] is triggers
    printed = explained(request_, config=proxy(), as_json=False)
    assert f"context {found['context_tokens']:,} tokens (counted), {found['usage_percent']:g} % of the window" in printed


def test_request_over_budget_never_fits(explained):
    huge = {"model": "m", "messages": [{"role": "user", "content": "word " * 20_000}]}
    assert explained(huge, config=proxy())["decision"] == "over_budget"
    printed = explained(huge, config=proxy(), as_json=False)
    assert "over_budget: sent unchanged, " in printed
    assert "fits" not in printed
