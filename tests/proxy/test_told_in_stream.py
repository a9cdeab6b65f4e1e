"""An overflow that a provider tells inside a streamed answer is retried, whatever form it has and whatever came before."""

import pytest
from configurations import deployment
from litellm_versions import TELLS_TRANSLATED_OVERFLOWS
from routes import CHAT, GEMINI, GEMINI_TO_OPENAI, MESSAGES, MESSAGES_TO_OPENAI, MODELS, RESPONSES, events_of

CHAT_BACKEND = {"use_chat_completions_api": True}
"""Sends `/v1/messages` to the deployment's chat route; LiteLLM's default is its Responses route."""
GOOGLE = ("messages-to-google", "responses-to-google")
FORMS = [
    *((CHAT, "chat", form) for form in ("nested", "flat")),
    *((MESSAGES_TO_OPENAI, "messages-to-chat", form) for form in ("nested", "flat")),
    *((RESPONSES, "responses-to-chat", form) for form in ("nested", "flat")),
    (MESSAGES_TO_OPENAI, "messages-to-google", "nested"),
    (RESPONSES, "responses-to-google", "nested"),
    (MESSAGES, "messages", "nested"),
    (GEMINI, "gemini", "nested"),
    (GEMINI_TO_OPENAI, "gemini-to-openai", "nested"),
    *((RESPONSES, "responses", form) for form in ("nested", "flat", "failed")),
    *((MESSAGES_TO_OPENAI, "messages-to-openai", form) for form in ("nested", "flat", "failed")),
]
CASES = [(*form, form[1] not in GOOGLE and n % 2 == 0) for n, form in enumerate(FORMS)]
"""With an opening before every other; Google's streams have none."""


def group_of(name, form, after_opening):
    return f"{name}-{form}-{'after' if after_opening else 'before'}-opening"


def groups(url):
    for _, name, *case in CASES:
        provider = "gemini" if name in GOOGLE else MODELS.get(name, "openai/served").partition("/")[0]
        made = deployment(url, group_of(name, *case), f"{provider}/claude-served")
        made["litellm_params"].update(CHAT_BACKEND if name.endswith("-to-chat") else {})
        yield made


@pytest.mark.parametrize(("route", "name", "form", "after_opening"), CASES, ids=[group_of(*case) for _, *case in CASES])
def test_it_is_retried_once_and_the_next_request_fits(route, name, form, after_opening, proxy, provider):
    is_translated = name.startswith("messages-to-") or (name == "responses-to-chat" and after_opening)
    if is_translated and not TELLS_TRANSLATED_OVERFLOWS:
        pytest.skip("this LiteLLM ends such a stream empty, or with the error")
    group = group_of(name, form, after_opening)
    provider.reset(refused_form=form, refused_after_opening=after_opening)
    answer = route.ask(proxy, group=group, stream=True)
    assert answer.status_code == 200, answer.text
    assert "error" not in {name for event in events_of(answer.text) for name in (event.get("type"), *event)}, answer.text
    assert "Answer" in answer.text
    assert [r["status"] for r in provider.requests()] == [400, 200]
    provider.reset(refused_form="wording", refused_after_opening=False)
    assert route.ask(proxy, group=group, stream=True, seed=1).status_code == 200
    assert [r["status"] for r in provider.requests()] == [200], "the limit is known now"
