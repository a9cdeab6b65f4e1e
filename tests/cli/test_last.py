"""`ctx-hooks explain --last` says what the event file knows of a request."""

import json
from dataclasses import replace

import pytest
import yaml
from told_events import ANSWER, CALL, DECISION, OVERFLOW

from ctx_hooks.cli import main
from ctx_hooks.telemetry.event_file import to_json


def of(number, event, **fields):
    """The event of a request by its number, each a minute after the one before."""
    call = replace(CALL, call_id=f"call-{number}", request_id=f"request-{number}")
    return replace(event, call=call, time_seconds=1_700_000_000.0 + 60 * number, **fields)


@pytest.fixture
def folder(tmp_path):
    """A folder with the events of two requests, the second one rescued, in the files of two workers."""
    rescued = [
        of(2, DECISION, decision="fits", reason="fits", provider_tokens_before=None, steps=()),
        of(2, OVERFLOW, mode="enforce", limit_tokens=8_000, refused_tokens=9_900),
        of(2, DECISION, decision="retried", trigger="overflow", attempt=1),
        of(2, ANSWER, decision="retried", attempts=2, beyond_window=True, provider_tokens_saved=0),
    ]
    for name, events in (("events.2.jsonl", [of(1, DECISION), of(1, ANSWER)]), ("events.1.jsonl", rescued)):
        (tmp_path / name).write_text("".join(f"{to_json(event)}\n" for event in events) + "no event\n")
    return tmp_path


def test_the_last_request_is_told_from_its_first_attempt_to_its_answer(folder, capsys):
    assert main(["explain", "--last", "--events", str(folder)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "request call-2, 2023-11-14 22:15:20 UTC"
    assert lines[1] == "group (model) by acompletion, team Research, key ann, client codex/1.2"
    told = " ".join(" ".join(lines).split())
    places = [
        told.index(expected)
        for expected in (
            "attempt 1: sent unchanged: fits",
            "attempt 1: the provider refused 9,900 tokens as too long (input); its limit is 8,000",
            "attempt 2: made smaller after the refusal, and sent again",
            "9,900 tokens came, 4,400 were left, the budget 8,000",
            "oldest_turns: 5,000 tokens less, 12 messages",
            "answered after 2 attempts: 4,400 input tokens billed, 1,000 of them cached",
            "without ctx_hooks it would have had no answer",
        )
    ]
    assert places == sorted(places)


@pytest.mark.parametrize("wanted", ["call-1", "request-1"])
def test_one_request_is_found_by_either_id(folder, wanted, capsys):
    assert main(["explain", "--last", "--id", wanted, "--events", str(folder), "--json"]) == 0
    events = json.loads(capsys.readouterr().out)
    assert [(event["name"], event["call"]["call_id"]) for event in events] == [("decision", "call-1"), ("answer", "call-1")]
    assert events[1]["billed"]["input_tokens"] == 4_400


def test_the_configuration_names_the_folder(folder, tmp_path, capsys):
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": {"events": {"path": str(folder)}}}}))
    assert main(["explain", "--last", "--config", str(config)]) == 0
    assert "call-2" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "code", "told"), [
    ([], 1, "No event file is known"), (["--events", "none"], 1, "there is no such file or folder"),
    (["--id", "another", "--events", "{folder}"], 1, "No event of another"), (["request.json"], 2, "--last"),
])  # fmt: skip
def test_what_is_missing_is_said(folder, arguments, code, told, capsys):
    assert main(["explain", "--last", *(a.format(folder=folder) for a in arguments)]) == code
    assert told in capsys.readouterr().err


def test_what_was_observed_is_told_as_what_would_be(tmp_path, capsys):
    (tmp_path / "events.1.jsonl").write_text(
        f"{to_json(of(1, DECISION, mode='observe'))}\n{to_json(of(1, ANSWER, mode='observe'))}\n"
    )
    assert main(["explain", "--last", "--events", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "observed, it would be compressed" in printed
    assert "5,500 input tokens would have been saved" in printed
