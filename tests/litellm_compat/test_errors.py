"""What an exception of LiteLLM's says of an overflow, and in which words."""

import litellm
import pytest

from ctx_hooks.litellm_compat.errors import overflow_of, text_of


def test_what_litellm_has_recognised_is_an_overflow_whatever_its_words():
    """The Router falls back on it, to our retries first: these have to be smaller."""
    error = litellm.ContextWindowExceededError("the model cannot hold that", "model", "provider")
    overflow = overflow_of(error)
    assert overflow is not None
    assert (overflow.kind, overflow.limit_tokens) == ("input", None)
    assert overflow_of(litellm.BadRequestError("the model cannot hold that", "model", "provider")) is None


def test_an_error_with_figures_keeps_them():
    error = litellm.ContextWindowExceededError("prompt is too long: 61004 tokens > 60000 maximum", "model", "provider")
    overflow = overflow_of(error)
    assert (overflow.limit_tokens, overflow.input_tokens) == (60_000, 61_004)


@pytest.mark.parametrize("kind", [litellm.ContextWindowExceededError, litellm.BadRequestError])
def test_the_providers_text_stands_without_the_names_of_litellms_exceptions(kind):
    assert text_of(kind("prompt is too long", "model", "provider")) == "prompt is too long"
    assert len(text_of(kind("x" * 1_000_000, "model", "provider"))) <= 2_000
