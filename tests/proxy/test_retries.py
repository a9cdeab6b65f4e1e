"""A retry is sent only where it is smaller or asks for less; else what comes after it follows at once."""

from __future__ import annotations

import pytest
from routes import CHAT, GEMINI, GEMINI_TO_OPENAI, MESSAGES, RESPONSES
from strategies import FIELDS, spoken

ROUTES = pytest.mark.parametrize(
    "route",
    [CHAT, MESSAGES, RESPONSES, GEMINI, GEMINI_TO_OPENAI],
    ids=["chat", "messages", "responses", "gemini", "gemini translated"],
)


def one_question(route, group):
    """A request that nothing can be taken from: the newest message is all of it."""
    question = [spoken(route.fmt, "user", "Why is the sky blue? " * 200)]
    limit = {"generationConfig": {"maxOutputTokens": 50}} if route.fmt == "gemini" else {"max_tokens": 50}
    return {"model": group, **limit, FIELDS[route.fmt]: question}


@ROUTES
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_request_that_cannot_shrink_is_asked_once(route, stream, proxy, provider):
    payload = {**one_question(route, route.hopeless), "stream": stream}
    answer = route.post(proxy, payload)
    assert answer.status_code == 400
    assert len(provider.requests()) == 1
    assert "60" in answer.json()["error"]["message"], "the provider's own figures are told"


@ROUTES
def test_what_cannot_shrink_goes_to_the_operators_fallback_at_once(route, proxy, provider):
    answer = route.post(proxy, one_question(route, "cornered"))
    assert answer.status_code == 200, answer.text
    assert [r["model"] for r in provider.requests()] == ["tiny", "large"]
