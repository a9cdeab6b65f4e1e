"""Events of every kind."""

from dataclasses import replace

import ctx_hooks
from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.telemetry.event_file import from_json
from ctx_hooks.telemetry.events import CallNames
from ctx_hooks.tokens.usage import Billed

CALL = CallNames("request", "call", "group", "id:model", "model", "t1", "Research", "ann", "org", "acompletion", "codex/1.2")
DECISION = ctx_hooks.DecisionEvent(
    name="decision", time_seconds=1_700_000_000.25, call=CALL, mode="enforce", decision="compressed", reason="",
    trigger="budget", attempt=0, format="openai-chat", local_tokens_before=9_000, local_tokens_after=4_000,
    provider_tokens_before=9_900, provider_tokens_after=4_400, budget_tokens=8_000, window_tokens=10_000,
    window_source="model_info", factor=1.1, requested_output_tokens=None,
    sent_output_tokens=500, steps=(StepReport("oldest_turns", 5_000, 12),),
    milliseconds={"total": 3.5, "counting": 1.25}, policy={"window_tokens": "team"},
)  # fmt: skip
ANSWER = ctx_hooks.AnswerEvent(
    name="answer", time_seconds=1_700_000_001.0, call=CALL, mode="enforce", decision="compressed",
    attempts=1, billed=Billed(4_400, 1_000, 0, 70), beyond_window=False,
    provider_tokens_saved=5_500, dollars_saved=0.0123,
)  # fmt: skip
FAILURE = ctx_hooks.FailureEvent("failure", 1_700_000_000.5, CALL, "enforce", 2, "retried")
OVERFLOW = ctx_hooks.OverflowEvent("overflow", 1_700_000_000.0, CALL, "observe", 0, "input", 8_000, None)
REJECTION = ctx_hooks.RejectionEvent("rejection", 1_700_000_000.5, CALL, "enforce", "compressed", "400")
SUMMARY = ctx_hooks.SummaryEvent(
    name="summary", time_seconds=1_700_000_002.0, call=CALL, summary_model="small", messages=40,
    outcome="accepted", reason="", dollars=0.004, milliseconds=2_500.0,
)  # fmt: skip
RETRIEVAL = ctx_hooks.RetrievalEvent("retrieval", 1_700_000_003.0, CALL, "archive", 8_000)
ITEM = ctx_hooks.ItemEvent("compaction_item", 1_700_000_007.0, CALL, "summarised")
ARCHIVE = ctx_hooks.ArchiveEvent("archive", 1_700_000_004.0, "stored", 50, "disk")
START = ctx_hooks.StartEvent(
    name="start", time_seconds=1_699_999_999.0, version="1.2", litellm_version="1.106.2", mode="observe", digest="0a1b2c",
    addons=("retrieval",), missing=(), mistakes=0,
)  # fmt: skip
FAULT = ctx_hooks.FaultEvent("fault", 1_700_000_005.0, "forwards the request unchanged")
IGNORED = ctx_hooks.IgnoredEvent("settings_ignored", 1_700_000_006.0, CALL, {"team": 1, "request": 1})
EVENTS = [
    DECISION,
    replace(DECISION, local_tokens_before=None, milliseconds={}, sent_output_tokens=10**30), ANSWER,
    replace(ANSWER, billed=None, provider_tokens_saved=None, dollars_saved=None, rereads={"read": 2}), FAILURE, OVERFLOW,
    REJECTION,
    ctx_hooks.LimitEvent("limit_learned", "id:model", "limit", 8_000, 10_000),
    SUMMARY,
    replace(SUMMARY, outcome="failed", reason="BudgetExceededError", dollars=None),
    RETRIEVAL, replace(RETRIEVAL, source="none", returned_chars=0), ARCHIVE, START, FAULT,
    replace(FAULT, consequence="", sink="event file"), IGNORED, ITEM, replace(ITEM, outcome="refused", reason="forged"),
]  # fmt: skip


def events_of(*paths):
    return [from_json(line) for path in paths for line in path.read_bytes().splitlines()]
