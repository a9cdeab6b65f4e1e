"""Synchronous calls of the SDK with the plugin as a callback: what is fitted, what is not, and that no answer is lost."""

import litellm
import pytest

import ctx_hooks
from ctx_hooks.hook import CtxHooks
from ctx_hooks.testing import ProviderSettings, agent_session

WINDOW = 8_000
PROVIDER = (ProviderSettings(window_tokens=WINDOW, windows={"wide": 1_000_000}),)


@pytest.fixture
def parameters(provider, monkeypatch):
    """Let LiteLLM have the plugin as its callback; return the parameters of the provider's narrow model."""
    for name in ("callbacks", "input_callback", "success_callback", "failure_callback"):
        monkeypatch.setattr(litellm, name, [])
    monkeypatch.setattr(litellm, "callbacks", [ctx_hooks.proxy_handler_instance])
    provider.reset(wording="openai")
    return {"model": "openai/served", "api_base": f"{provider.url}/v1", "api_key": "none"}


@pytest.fixture
def router(parameters):
    groups = (("known", "openai/served", WINDOW), ("small", "openai/served", 200_000), ("wide", "openai/wide", 500_000))
    return litellm.Router(
        model_list=[
            {
                "model_name": group,
                "litellm_params": {**parameters, "model": model},
                "model_info": {"max_input_tokens": window},
            }
            for group, model, window in groups
        ],
        context_window_fallbacks=[{"small": ["wide"]}],
        num_retries=0,
    )


def chat(**fields):
    return {**agent_session("openai-chat", model="known"), **fields}


def test_a_synchronous_chat_call_is_sent_as_it_is(parameters, router, provider):
    for call in (lambda: litellm.completion(**chat(**parameters)), lambda: router.completion(**chat())):
        with pytest.raises(litellm.ContextWindowExceededError):
            call()
    assert [(r["status"], len(r["payload"]["messages"])) for r in provider.requests()] == [
        (400, len(chat()["messages"]))
    ] * 2


@pytest.mark.parametrize("through", ["router", "sdk"])
async def test_a_refusal_teaches_without_a_proxy(through, parameters, router, provider, monkeypatch):
    """The retries are the proxy's: of a window that is stated far too large two refusals show the named limit."""
    monkeypatch.setattr(litellm, "callbacks", [CtxHooks()])
    metadata = {"kept": "by the caller"}
    sent = chat(model="small", metadata=metadata, disable_fallbacks=True)
    calls = router.acompletion if through == "router" else litellm.acompletion
    fields = sent if through == "router" else {**sent, **parameters, "model_info": {"max_input_tokens": 200_000}}
    refusals = 2 if through == "router" else 1  # the SDK states no window
    for _ in range(refusals):
        with pytest.raises(litellm.ContextWindowExceededError):
            await calls(**fields)
    assert (await calls(**fields)).choices[0].message.content.startswith("Answer to")
    assert [r["status"] for r in provider.requests()] == [*[400] * refusals, 200]
    assert not any(name.startswith("ctx_hooks") for name in metadata)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_overflow_that_litellm_does_not_know_goes_to_the_operators_fallback(stream, router, provider):
    provider.reset(wording="cerebras")
    answer = router.completion(**chat(model="small", stream=stream))
    text = "".join(p.choices[0].delta.content or "" for p in answer) if stream else answer.choices[0].message.content
    assert text.startswith("Answer to")
    assert [(r["model"], r["status"]) for r in provider.requests()] == [("served", 400), ("wide", 200)]
