"""What was billed is read from every provider's usage record, and from LiteLLM's own."""

from types import SimpleNamespace

import pytest
from litellm.types.utils import PromptTokensDetailsWrapper, Usage

from ctx_hooks.tokens.usage import Billed, billed_of


@pytest.mark.parametrize(("usage", "expected"), [
    ({"prompt_tokens": 120, "completion_tokens": 7}, 120),
    ({"input_tokens": 20, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 80}, 400),
    ({"input_tokens": 500, "input_tokens_details": {"cached_tokens": 400}}, 500), (SimpleNamespace(prompt_tokens=11), 11),
    ({}, None), (None, None), ({"prompt_tokens": "many"}, None),
])  # fmt: skip
def test_the_whole_input_is_read_from_every_kind_of_usage(usage, expected):
    billed = billed_of(usage)
    assert (billed.input_tokens if billed else None) == expected


@pytest.mark.parametrize(("usage", "expected"), [
    ({"input_tokens": 20, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 80}, Billed(400, 300, 80)),
    ({"input_tokens": 500, "input_tokens_details": {"cached_tokens": 400}, "output_tokens": 9}, Billed(500, 400, 0, 9)),
    (Usage(prompt_tokens=90, completion_tokens=3, prompt_tokens_details={"cached_tokens": 50}), Billed(90, 50, 0, 3)),
    ({"prompt_tokens": 90, "prompt_tokens_details": PromptTokensDetailsWrapper(cached_tokens=50)}, Billed(90, 50)),
    ({"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": 500}}, Billed(90, 90)),
    (Usage(prompt_tokens=400, cache_read_input_tokens=300, cache_creation_input_tokens=80), Billed(400, 300, 80)),
], ids=str)  # fmt: skip
def test_what_the_prompt_cache_served_and_took_is_read(usage, expected):
    assert billed_of(usage) == expected
