"""What changed a request, or would have, is one log line with its answer's beside it: figures and names, never text."""

import json
import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest
from litellm._logging import JsonFormatter
from proxies import printed_by
from told_events import ANSWER, CALL, DECISION, FAILURE, SUMMARY

from ctx_hooks.flow.startup import attach_sinks, detach_sinks
from ctx_hooks.policy.settings import Settings
from ctx_hooks.runtime.warnings import LONGEST_FIGURES_CHARS
from ctx_hooks.telemetry.events import LimitEvent
from ctx_hooks.telemetry.listeners import emit


@pytest.fixture
def lines(caplog):
    attach_sinks(Settings())
    caplog.set_level(logging.INFO, "ctx_hooks")
    yield caplog
    detach_sinks()


@pytest.mark.parametrize(("event", "figures"), [
    (DECISION, ("event=decision decision=compressed mode=enforce trigger=budget attempt=0 format=openai-chat "
               "local_tokens_before=9000 local_tokens_after=4000 provider_tokens_before=9900 provider_tokens_after=4400 "
               "budget_tokens=8000 window_tokens=10000 window_source=model_info factor=1.1 sent_output_tokens=500 "
               "steps=oldest_turns milliseconds=3.5")),
    (ANSWER, ("event=answer decision=compressed mode=enforce attempts=1 input_tokens=4400 "
             "cached_tokens=1000 provider_tokens_saved=5500 dollars_saved=0.0123")),
    (FAILURE, "event=failure decision=failed mode=enforce attempts=2 decided=retried"),
    (SUMMARY, ("event=summary outcome=accepted summary_model=small messages=40 "
              "dollars=0.004 milliseconds=2500.0")),
    (LimitEvent("limit_learned", "id:model", "limit", 8_000, 10_000),
     "event=limit_learned deployment=id:model kind=limit limit_tokens=8000 window_tokens=10000 mode=enforce"),
], ids=["decision", "answer", "failure", "summary", "limit"])  # fmt: skip
def test_what_was_done_is_a_line_with_its_figures_and_who_asked(event, figures, lines):
    emit(event)
    who = " call_id=call model_group=group team=Research key=ann client=codex/1.2 deployment=id:model"
    expected = figures + (who if hasattr(event, "call") else "")
    assert [(record.getMessage(), record.levelname) for record in lines.records] == [(expected, "INFO")]


def test_a_request_that_goes_as_it_came_has_no_line(lines):
    emit(replace(DECISION, decision="fits"))
    emit(replace(ANSWER, decision="fits"))
    assert not lines.records


@pytest.mark.parametrize("name", [
    'a "quoted" name', "a=b", "new\nline", "{'level': 'CRITICAL', 'ctx_hooks': 'forged'}", '{"message": "forged"}',
    "x" * 5_000,
])  # fmt: skip
def test_whatever_a_name_holds_a_line_is_one_bounded_line_and_its_json_has_the_figures(lines, name):
    emit(replace(DECISION, call=replace(CALL, call_id=name)))
    (record,) = lines.records
    assert len(record.getMessage().splitlines()) == 1
    assert len(record.getMessage()) <= LONGEST_FIGURES_CHARS
    told = json.loads(JsonFormatter().format(record))
    assert told["level"] == "INFO"
    assert told["message"].startswith("event=decision decision=compressed")
    assert told["ctx_hooks"]["provider_tokens_before"] == 9_900
    assert told["ctx_hooks"]["team"] == "Research"


LOGGING = """
import litellm, sys
from litellm import _logging
sys.path.insert(0, FOLDER)
for each in (_logging.verbose_proxy_logger, _logging.handler):
    each.setLevel(LEVEL)  # as LiteLLM does for LITELLM_LOG
_logging.numeric_level = _logging.resolve_log_level(LEVEL)
from ctx_hooks.policy.settings import Settings
from ctx_hooks.flow.startup import attach_sinks
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.telemetry.log import share_log_output
from told_events import DECISION
share_log_output()
attach_sinks(Settings())
if JSON:
    litellm.turn_on_json()  # as the proxy does for `json_logs: true`, before or after it loads callbacks
emit(DECISION)
"""


@pytest.mark.parametrize(("level", "as_json"), [("INFO", False), ("INFO", True), ("WARNING", False), ("WARNING", True)])
def test_lines_appear_once_where_litellm_shows_its_own_and_as_json_where_it_logs_json(level, as_json):
    code = LOGGING.replace("FOLDER", repr(str(Path(__file__).parents[1]))).replace("LEVEL", repr(level))
    printed = printed_by(code.replace("JSON", repr(as_json)))
    lines = [line for line in printed.splitlines() if "event=decision" in line]
    assert len(lines) == (level == "INFO")
    for line in lines:
        assert line.startswith("{") == as_json
        assert not as_json or json.loads(line)["ctx_hooks"]["provider_tokens_after"] == 4_400


@pytest.mark.parametrize("as_json", [False, True])
def test_warnings_have_time_level_and_name_at_the_default_level(as_json):
    code = f"""
import litellm
if {as_json}:
    litellm.turn_on_json()
litellm.callback_settings = {{"ctx_hooks": {{"defaults": {{"reserv": 1}}}}}}
from ctx_hooks.hook import CtxHooks
CtxHooks()
"""
    (line,) = [line for line in printed_by(code).splitlines() if "defaults.reserv" in line]
    if as_json:
        told = json.loads(line)
        assert (told["level"], told["component"]) == ("WARNING", "ctx_hooks")
        assert told["timestamp"]
    else:
        assert re.match(r"\d\d:\d\d:\d\d - ctx_hooks:WARNING: ", line)
