"""Whether a deployment's answers of the Responses API can go back to it item by item, as a further call sends them."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version

from ctx_hooks.litellm_compat.registry import RESPONSES_API

FIRST_WHOLE = (1, 106)
"""Of a stream that LiteLLM translates from another API, 1.100 to 1.103 repeat the thinking in what a client is to send back,
which the provider then refuses ("`thinking` blocks cannot be modified"), and give two items one number; 1.106 was seen to do
neither.
"""


@lru_cache(maxsize=256)
def takes_its_items_back(model: str, litellm_version: str = "") -> bool:
    """Return whether a provider speaks the Responses API itself, or LiteLLM translates it without loss.

    Args:
        model: the provider's model, such as `openai/gpt-4o`.
        litellm_version: the installed one where it is not given.
    """
    found = (litellm_version or version("litellm")).split(".")[:2]
    if all(map(str.isdecimal, found)) and tuple(map(int, found)) >= FIRST_WHOLE:
        return True
    return _speaks_responses(model)


def _speaks_responses(model: str) -> bool:
    import litellm  # noqa: PLC0415 - loaded by the proxy long before

    config_of = RESPONSES_API.find()
    try:
        _, provider, _, _ = litellm.get_llm_provider(model)
        return config_of is not None and config_of(provider=provider, model=model) is not None
    except Exception:  # noqa: BLE001 - of a model that LiteLLM cannot place nothing is known
        return False
