"""The public parts of the fake provider say what they expect."""

import httpx
import pytest

from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session, violations


@pytest.mark.parametrize("ask", [
    lambda: agent_session("openai"), lambda: violations("chat", {}), lambda: ProviderSettings(wording="nobody's"),
])  # fmt: skip
def test_unknown_name_raises_known_ones(ask):
    with pytest.raises(ValueError, match=r"one of .*(openai-chat|openai_responses).* is expected, not ."):
        ask()


def test_running_provider_refuses_unknown_wording():
    with FakeProvider() as provider, pytest.raises(httpx.HTTPStatusError):
        provider.configure(wording="nobody's")
