"""Figures of an attempt stand in the metadata that LiteLLM logs, beside what the caller has put there.

An answer is learned from once it is whole, and billed only where a provider gave it.
"""

import pytest
from litellm.proxy.spend_tracking.compression_savings import extract_compression_saved_tokens
from litellm.types.utils import ModelResponse, Usage

from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.litellm_compat.logged import Answer, answer_of, write_figures, write_notes
from ctx_hooks.runtime.warnings import forget_warnings
from ctx_hooks.tokens.usage import Billed

COMPRESSED = {"decision": "compressed", "attempt": 0}
UNTOUCHED = {"decision": "fits", "attempt": 0}


def test_a_second_pass_of_one_attempt_that_has_nothing_to_do_hides_nothing():
    own = {"a": 1}
    write_figures(Call({"metadata": own}), COMPRESSED)
    write_figures(Call({"metadata": own}), UNTOUCHED)
    assert own["spend_logs_metadata"]["ctx_hooks"] == COMPRESSED
    write_figures(Call({"metadata": own}), {**UNTOUCHED, "attempt": 1})
    assert own["spend_logs_metadata"]["ctx_hooks"] == {**UNTOUCHED, "attempt": 1}


def test_what_a_caller_puts_in_the_place_of_figures_is_replaced():
    own = {"spend_logs_metadata": {"ctx_hooks": {"decision": "compressed", "attempt": 0, "forged": True}}}
    write_figures(Call({"metadata": own}), UNTOUCHED)
    assert own["spend_logs_metadata"]["ctx_hooks"] == UNTOUCHED


SAVED = {"tokens_saved": 500, "dollars_saved": 0.5, "beyond_window": False}
SAVINGS = {"tokens_before": 900, "tokens_after": 400, "tokens_saved": 500, "source": "ctx_hooks"}
OTHERS = {"tokens_before": 90, "tokens_after": 40, "tokens_saved": 50, "source": "compression_interception"}
TAGS = ("ctx_hooks:compressed",)


def logged_call(own="metadata", **entries):
    metadata = {"user_api_key": "x", **entries}
    payload = {"metadata": {"spend_logs_metadata": metadata.get("spend_logs_metadata")}, "request_tags": ["a", "b"]}
    return {"litellm_params": {own: metadata}, "standard_logging_object": payload}, metadata


@pytest.mark.parametrize("own", ["metadata", "litellm_metadata"])
def test_notes_of_an_answer_stand_in_spend_log_and_payload_beside_the_figures_and_the_callers_own(own):
    logged, metadata = logged_call(own, spend_logs_metadata={"job": 7})
    write_figures(Call({own: metadata}), COMPRESSED)
    write_notes(Call(logged), SAVED, SAVINGS, TAGS)
    told = {"job": 7, "ctx_hooks": {**COMPRESSED, **SAVED}}
    assert metadata["spend_logs_metadata"] == told
    assert logged["standard_logging_object"]["metadata"]["spend_logs_metadata"] == told
    assert logged["standard_logging_object"]["request_tags"] == ["a", "b", *TAGS]
    assert metadata["compression_savings"] == SAVINGS
    write_notes(Call(logged), SAVED, SAVINGS, TAGS)
    assert logged["standard_logging_object"]["request_tags"] == ["a", "b", *TAGS]


def test_over_googles_route_figures_and_notes_stand_where_the_spend_log_is_made_of():
    logged, metadata = logged_call(spend_logs_metadata={"ctx_hooks": {"forged": 1}})
    write_figures(Call({"metadata": metadata}), COMPRESSED)
    notes = logged["litellm_params"]["litellm_metadata"] = {"model_group": "group"}
    logged["litellm_params"]["proxy_server_request"] = {"url": "/v1beta/models/x:generateContent"}
    write_notes(Call(logged), SAVED, SAVINGS, ())
    assert extract_compression_saved_tokens(notes) == 500
    assert notes["spend_logs_metadata"]["ctx_hooks"] == {**COMPRESSED, **SAVED}


def test_savings_of_an_earlier_call_of_the_same_request_are_not_those_of_the_next():
    logged, metadata = logged_call()
    write_notes(Call(logged), SAVED, SAVINGS, ())
    write_notes(Call(logged), SAVED, {**SAVINGS, "tokens_saved": 7}, ())
    assert extract_compression_saved_tokens(metadata) == 7
    write_notes(Call(logged), SAVED, None, ())
    assert extract_compression_saved_tokens(metadata) == 0


def test_another_compressors_savings_stay_with_one_warning(caplog):
    forget_warnings()
    for savings, warnings in ((None, 0), (SAVINGS, 1), (SAVINGS, 1)):
        logged, metadata = logged_call(compression_savings=OTHERS)
        write_notes(Call(logged), SAVED, savings, ())
        assert metadata["compression_savings"] == OTHERS
        assert caplog.text.count("another compressor") == warnings


USAGE = Usage(prompt_tokens=3, completion_tokens=1, total_tokens=4)


@pytest.mark.parametrize(("cache_hit", "billed"), [(True, False), (False, True), (None, True)])
def test_what_litellms_cache_answers_is_billed_nothing(cache_hit, billed):
    assert bool(answer_of({"cache_hit": cache_hit}, ModelResponse(usage=USAGE)).billed) is billed


def test_a_stream_is_answered_once_it_is_put_together():
    whole = {"usage": {"input_tokens": 3}}
    assert answer_of({"stream": False}, whole) == answer_of({}, whole) == Answer(Billed(3))
    assert answer_of({"stream": True}, "an event") is None
    assert answer_of({"stream": True, "async_complete_streaming_response": whole}, "the last event") == Answer(Billed(3))
