"""A group whose deployments have an order: an overflow is retried where it arose, for all other errors the Router goes on.

The Router leaves context-window errors out of its plan by order; `order` stands in `litellm_params` or in `model_info`.
"""

from __future__ import annotations

import pytest
from configurations import deployment
from routes import CHAT, MESSAGES, RESPONSES

ROUTES = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])


def groups(url):
    for place in ("litellm_params", "model_info"):
        for route, prefix in ((CHAT, "openai"), (MESSAGES, "anthropic"), (RESPONSES, "openai")):
            for model, order in (("served", 1), ("wide", 2)):
                made = deployment(url, f"{place}-{route.fmt}", f"{prefix}/{model}")
                made[place]["order"] = order
                yield made


@ROUTES
@pytest.mark.parametrize("place", ["litellm_params", "model_info"])
def test_an_overflow_is_retried_on_the_order_that_refused_it(route, place, proxy, provider):
    answer = route.ask(proxy, group=f"{place}-{route.fmt}", seed=len(place))
    assert answer.status_code == 200, answer.text
    assert [(r["model"], r["status"]) for r in provider.requests()] == [("served", 400), ("served", 200)]
    assert answer.headers["x-ctx-hooks"].startswith("retried")
