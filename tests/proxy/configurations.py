"""Configurations of proxies, and what LiteLLM does otherwise from a version on where nothing else tells."""

import inspect
import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import litellm
from routes import MODELS, NAMES

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "ctx_hooks.proxy_handler_instance"
PATIENT = """
from ctx_hooks.addons.retrieval.archive import archive
from ctx_hooks.store import shared_store

archive.GET_SECONDS = shared_store.HURRY_SECONDS = shared_store.SLOW_SECONDS = 30.0
"""
"""Lines of a module that a proxy imports: a busy machine is no broken store."""
LITELLM = tuple(int(number) for number in version("litellm").split(".")[:2])
TELLS_TRANSLATED_OVERFLOWS = LITELLM >= (1, 106)
"""Whether an overflow inside a stream that LiteLLM translates is an error to the Router."""
STATES_STREAMED_USAGE = LITELLM >= (1, 108)
"""Whether streams of Google's route to other providers state their usage; before, LiteLLM did not ask these for it."""
CONTINUES_CHAT = "enable_mid_stream_fallback_continuation" in inspect.signature(litellm.Router.__init__).parameters
"""Whether the Router can go on with a broken chat stream at a fallback."""
ENDS_WITH_DONE = LITELLM < (1, 110)
"""Whether a stream of `/v1/responses` ends with `[DONE]`, which OpenAI's own does not."""
GENERAL = {"master_key": "os.environ/LITELLM_MASTER_KEY"}
WINDOW = 3_000
BELIEVED = 200_000
"""What the proxy thinks the window is: too much, so that the provider has to refuse."""


def deployment(provider_url: str, group: str, model: str, **model_info: Any) -> dict[str, Any]:
    base = provider_url + {"openai": "/v1", "gemini": "/v1beta"}.get(model.split("/", maxsplit=1)[0], "")
    params = {"model": model, "api_base": base, "api_key": "not-a-key"}
    return {"model_name": group, "litellm_params": params, "model_info": {"max_input_tokens": BELIEVED, **model_info}}


def configuration(provider_url: str, *models: dict[str, Any], **sections: Any) -> dict[str, Any]:
    unknown = [
        deployment(provider_url, f"{name}-{mode}", MODELS.get(name, "openai/served"))
        for name in NAMES
        for mode in ("whole", "streamed")
    ]
    listed = models or (
        *unknown,
        deployment(provider_url, "chat", "openai/served"),
        deployment(provider_url, "claude", "anthropic/claude-served"),
        deployment(provider_url, "gemini", "gemini/served"),
        deployment(provider_url, "fitted", "openai/served", max_input_tokens=WINDOW),
        deployment(provider_url, "fitted-claude", "anthropic/served", max_input_tokens=WINDOW),
        deployment(provider_url, "fitted-gemini", "gemini/served", max_input_tokens=WINDOW),
        deployment(provider_url, "hopeless", "openai/tiny"),
        deployment(provider_url, "hopeless-claude", "anthropic/tiny"),
        deployment(provider_url, "hopeless-gemini", "gemini/tiny"),
        deployment(provider_url, "cornered", "openai/tiny"),
        deployment(provider_url, "large", "openai/large"),
    )
    return {
        "model_list": list(listed),
        "litellm_settings": {"callbacks": [PLUGIN], "context_window_fallbacks": [{"cornered": ["large"]}]},
        "general_settings": GENERAL,
        **sections,
    }


def importable(folder: Path, name: str, code: str) -> dict[str, str]:
    """Write a module, and return the environment in which a proxy can import it."""
    (folder / f"{name}.py").write_text(code)
    return on_path(folder)


def on_path(folder: Path) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
