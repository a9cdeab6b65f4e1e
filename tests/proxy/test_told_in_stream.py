"""An overflow that a provider tells inside a streamed answer is retried, whatever form it has and whatever came before."""

from __future__ import annotations

import json

import pytest
from conftest import configuration, deployment
from routes import CHAT, GEMINI, GEMINI_TO_OPENAI, MESSAGES, MESSAGES_TO_OPENAI, MODELS, RESPONSES

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess

WINDOW = 8_000
FORMS = [
    (CHAT, "chat", "nested"),
    (MESSAGES, "messages", "nested"),
    (GEMINI, "gemini", "nested"),
    (GEMINI_TO_OPENAI, "gemini-to-openai", "nested"),
    *((RESPONSES, "responses", form) for form in ("nested", "flat", "failed")),
    *((MESSAGES_TO_OPENAI, "messages-to-openai", form) for form in ("nested", "flat", "failed")),
]
CASES = [(*form, after_opening) for form in FORMS for after_opening in (False, True)]


def group_of(name, form, after_opening):
    return f"{name}-{form}-{'after' if after_opening else 'before'}-opening"


@pytest.fixture(scope="module")
def telling():
    with FakeProvider(ProviderSettings(window_tokens=WINDOW)) as provider:
        models = [deployment(provider.url, group_of(*case), MODELS.get(case[0], "openai/served")) for _, *case in CASES]
        with ProxyProcess(configuration(provider.url, *models)) as proxy:
            yield proxy, provider


@pytest.mark.parametrize(("route", "name", "form", "after_opening"), CASES, ids=[group_of(*case) for _, *case in CASES])
def test_it_is_retried_once_and_the_next_request_fits(route, name, form, after_opening, telling):
    proxy, provider = telling
    group = group_of(name, form, after_opening)
    provider.reset(refused_form=form, refused_after_opening=after_opening)
    answer = route.ask(proxy, group=group, stream=True)
    assert answer.status_code == 200, answer.text
    assert "error" not in {name for event in events(answer.text) for name in (event.get("type"), *event)}, answer.text
    assert "Answer" in answer.text
    assert [r["status"] for r in provider.requests()] == [400, 200]
    provider.reset()
    assert route.ask(proxy, group=group, stream=True, seed=1).status_code == 200
    assert [r["status"] for r in provider.requests()] == [200], "the limit is known now"


def events(text):
    data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in data if line != "[DONE]"]
