"""LiteLLM reserves the tokens of a request as it was sent against a key's `tpm_limit`, before the plugin fits it."""

import json

import pytest
from routes import CHAT

from ctx_hooks.testing import agent_session

TPM = 20_000
CALLERS = {"limited": {"tpm_limit": TPM}}


@pytest.mark.parametrize(("name", "status"), [("proxy", 429), ("checking", 200)])
def test_long_request_passes_tpm_limit_without_reservation(request, name, status):
    """The Router that checks windows is that of the proxy which LiteLLM reserves no tokens at."""
    session = agent_session("openai-chat", turns=40, result_chars=4_000, model="fitted")
    assert len(json.dumps(session)) > 4 * TPM
    answer = CHAT.post(request.getfixturevalue(name), session, headers={"authorization": "Bearer sk-limited"})
    assert answer.status_code == status
    if status == 200:
        assert answer.headers["x-ctx-hooks"].startswith("compressed")
