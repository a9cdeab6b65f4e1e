"""How much of the requested output is left beside a long conversation, by the policy's reserve."""

import pytest
from configurations import configuration, deployment
from proxies import Proxy
from routes import CHAT

WINDOW_TOKENS, ASKED_TOKENS = 12_000, 4_000
LONG = {"turns": 12, "result_chars": 2_500}
"""About 9,500 tokens: within the default budget of 11,040, and above what a quarter for the output leaves."""


@pytest.fixture(scope="module")
def own_proxy(provider):
    """A proxy whose deployments state their reserves, and whose log has lines at INFO."""
    reserves = {"usual": {}, "output": {"reserve": "output"}, "large": {"reserve": 10_000}}
    models = [
        deployment(provider.url, name, "openai/served", max_input_tokens=WINDOW_TOKENS, ctx_hooks=reserve)
        for name, reserve in reserves.items()
    ]
    with Proxy(configuration(provider.url, *models), {"LITELLM_LOG": "INFO"}) as running:
        yield running


@pytest.mark.parametrize(("group", "is_kept"), [("usual", False), ("output", True)])
def test_a_reserve_for_the_output_leaves_it_room(group, is_kept, own_proxy, provider):
    provider.reset(window_tokens=WINDOW_TOKENS, counts_output=True, wording="openai_requested")
    answer = CHAT.ask(own_proxy, group=group, size=LONG, max_tokens=ASKED_TOKENS)
    (request,) = provider.requests()
    sent = request["payload"]["max_tokens"]
    assert (answer.status_code, request["status"]) == (200, 200)
    assert request["input_tokens"] + sent <= WINDOW_TOKENS
    assert (sent >= WINDOW_TOKENS / 4) is is_kept
    named = f"max_tokens={sent} of {ASKED_TOKENS}" in answer.headers["x-ctx-hooks"]
    assert named is (sent < ASKED_TOKENS)
