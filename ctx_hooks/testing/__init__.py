"""For tests of and around the plugin: a strict fake provider, a real proxy process, and conversations to send.

    with FakeProvider(ProviderSettings(window_tokens=8_000)) as provider, ProxyProcess(config) as proxy:
        ...

It deliberately shares no code with the rest of the package: it has its own rules and token count, so that it does not repeat
mistakes of the plugin.
"""

from ctx_hooks.testing.behaviour import Call, ProviderSettings, Reply
from ctx_hooks.testing.conversations import agent_session
from ctx_hooks.testing.processes import LOOPBACK, MASTER_KEY, FakeProvider, ProxyProcess, free_port
from ctx_hooks.testing.rules import sign, violations

__all__ = [
    "LOOPBACK",
    "MASTER_KEY",
    "Call",
    "FakeProvider",
    "ProviderSettings",
    "ProxyProcess",
    "Reply",
    "agent_session",
    "free_port",
    "sign",
    "violations",
]
