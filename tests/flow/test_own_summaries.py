"""What a provider has summed up itself and does not read any more takes no room from what it reads."""

import pytest
from engine_requests import decided, sent, to, tokens_of
from strategies import FIELDS

from ctx_hooks.attempts.request import Request
from ctx_hooks.flow.decision import Untouched
from ctx_hooks.testing import agent_session

OWN = {
    "anthropic": ("anthropic/claude", {"role": "assistant", "content": [{"type": "compaction", "content": "All."}]}),
    "openai-responses": ("openai/gpt-5", {"type": "compaction", "encrypted_content": "gAAAA" * 20}),
}


def behind(fmt, *before):
    """Return a request with a provider's summary behind `before`, and what came since; and that request by itself."""
    newer, field = agent_session(fmt, turns=12, seed=1), FIELDS[fmt]
    since = [OWN[fmt][1], *newer[field]]
    return Request(fmt, {**newer, field: [*before, *since]}), Request(fmt, {**newer, field: since})


@pytest.mark.parametrize("fmt", OWN)
def test_messages_before_provider_summary_take_no_room(fmt):
    older = agent_session(fmt, turns=40)[FIELDS[fmt]]
    whole, read = behind(fmt, *older)
    model, window = OWN[fmt][0], int(tokens_of(read) * 1.3)
    decision, _ = decided(whole, to(window, model=model))
    assert type(decision) is Untouched, "the provider drops them"
    small = to(window // 2, model=model)
    assert sent(whole, decided(whole, small)[0]).items == sent(read, decided(read, small)[0]).items
    other = decided(whole, to(window, model="gemini/pro"))[0]
    assert sent(whole, other).items[0] == older[0], "LiteLLM's translation knows no such summary"
