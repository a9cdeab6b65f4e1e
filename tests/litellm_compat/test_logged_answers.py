"""An answer is learned from once it is whole, and billed only where a provider gave it."""

import pytest
from litellm.types.utils import ModelResponse, Usage

from ctx_hooks.litellm_compat import billed_usage_of, logged_answer

USAGE = Usage(prompt_tokens=3, completion_tokens=1, total_tokens=4)


def test_the_usage_of_an_answer_is_found_in_mappings_and_objects():
    assert billed_usage_of({}, ModelResponse(usage=USAGE)).prompt_tokens == 3
    assert billed_usage_of({}, {"usage": {"input_tokens": 3}}) == {"input_tokens": 3}
    assert billed_usage_of({}, None) is None


@pytest.mark.parametrize(("cache_hit", "billed"), [(True, False), (False, True), (None, True)])
def test_what_litellms_cache_answers_is_billed_nothing(cache_hit, billed):
    assert bool(billed_usage_of({"cache_hit": cache_hit}, ModelResponse(usage=USAGE))) is billed


def test_a_stream_is_answered_once_it_is_put_together():
    assert logged_answer({"stream": False}, "whole") == "whole"
    assert logged_answer({}, "whole") == "whole"
    assert logged_answer({"stream": True}, "an event") is None
    assert logged_answer({"stream": True, "async_complete_streaming_response": "whole"}, "the last event") == "whole"
