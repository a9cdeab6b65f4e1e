"""A group whose deployments have an order: an overflow is retried where it arose, for all other errors the Router goes on.

The Router leaves context-window errors out of its plan by order; `order` stands in `litellm_params` or in `model_info`.
"""

from __future__ import annotations

import pytest
from configurations import configuration, deployment
from proxies import Proxy
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.testing import FakeProvider, ProviderSettings

ROUTES = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])


@pytest.fixture(scope="module")
def two_orders():
    with FakeProvider(ProviderSettings(window_tokens=8_000, windows={"wide": 1_000_000})) as provider:

        def ordered(group, model, order, *, in_params):
            made = deployment(provider.url, group, model)
            made["litellm_params" if in_params else "model_info"]["order"] = order
            return made

        models = [
            ordered(f"{place}-{route.fmt}", f"{prefix}/{model}", order, in_params=place == "params")
            for place in ("params", "info")
            for route, prefix in ((CHAT, "openai"), (MESSAGES, "anthropic"), (RESPONSES, "openai"))
            for model, order in (("served", 1), ("wide", 2))
        ]
        with Proxy(configuration(provider.url, *models)) as proxy:
            yield proxy, provider


@ROUTES
@pytest.mark.parametrize("place", ["params", "info"])
def test_an_overflow_is_retried_on_the_order_that_refused_it(route, place, two_orders):
    proxy, provider = two_orders
    provider.reset()
    answer = route.ask(proxy, group=f"{place}-{route.fmt}", seed=len(place))
    assert answer.status_code == 200, answer.text
    assert [(r["model"], r["status"]) for r in provider.requests()] == [("served", 400), ("served", 200)]
    assert answer.headers["x-ctx-hooks"].startswith("retried")
