"""Every real wording of an overflow is one as well once LiteLLM has made an exception of it.

Of a limit a minute, test_router_settings.py.
"""

import litellm
import pytest

from ctx_hooks.litellm_compat.errors import overflow_of, text_of
from ctx_hooks.testing import ProviderSettings
from ctx_hooks.testing.behaviour import WORDINGS

WINDOW = 1_000
PROVIDER = (ProviderSettings(window_tokens=WINDOW),)
MODELS = ("openai/served", "anthropic/served")
QUESTION = [{"role": "user", "content": "Why is the sky blue? " * 300}]


@pytest.mark.parametrize(
    ("wording", "model"), [(name, MODELS[n % 2]) for n, name in enumerate(sorted(WORDINGS)) if name != "rate_limited"]
)
async def test_every_wording_is_recognised_in_litellms_exception(wording, model, provider):
    provider.reset(wording=wording)
    base = provider.url + ("/v1" if model.startswith("openai/") else "")
    with pytest.raises(Exception) as raised:  # noqa: PT011 - LiteLLM's own differ from wording to wording
        await litellm.acompletion(model, QUESTION, api_base=base, api_key="none", max_retries=0, max_tokens=10)
    found = overflow_of(raised.value)
    assert found is not None
    assert found.kind in {"input", "input_plus_output"}
    (asked,) = provider.requests()
    assert found.limit_tokens in (WINDOW, None)
    assert found.input_tokens in (asked["input_tokens"], None)


def test_what_litellm_has_recognised_is_an_overflow_whatever_its_words():
    """The Router falls back on it, to our retries first: these have to be smaller."""
    error = litellm.ContextWindowExceededError("the model cannot hold that", "model", "provider")
    overflow = overflow_of(error)
    assert overflow is not None
    assert (overflow.kind, overflow.limit_tokens) == ("input", None)
    assert overflow_of(litellm.BadRequestError("the model cannot hold that", "model", "provider")) is None


@pytest.mark.parametrize("kind", [litellm.ContextWindowExceededError, litellm.BadRequestError])
def test_the_providers_text_stands_without_the_names_of_litellms_exceptions(kind):
    assert text_of(kind("prompt is too long", "model", "provider")) == "prompt is too long"
    assert len(text_of(kind("x" * 1_000_000, "model", "provider"))) <= 2_000
