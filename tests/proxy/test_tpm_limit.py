"""LiteLLM reserves the tokens of a request as it was sent against a key's `tpm_limit`, before the plugin fits it."""

import json

import pytest
from configurations import GENERAL, configuration, importable, on_path
from proxies import Proxy
from routes import CHAT

from ctx_hooks.testing import agent_session

TPM = 20_000
AUTH = """
from litellm.proxy._types import UserAPIKeyAuth

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, token=api_key, tpm_limit=TPM)
"""


@pytest.mark.parametrize(("reserves", "status"), [("true", 429), ("false", 200)])
def test_a_long_request_passes_tpm_limit_without_reservation(provider, tmp_path, reserves, status):
    importable(tmp_path, "limited", AUTH.replace("TPM", str(TPM)))
    config = configuration(provider.url, general_settings={**GENERAL, "custom_auth": "limited.user_api_key_auth"})
    environment = on_path(tmp_path) | {"LITELLM_TPM_TOKEN_RESERVATION_ENABLED": reserves}
    session = agent_session("openai-chat", turns=40, result_chars=4_000, model="fitted")
    assert len(json.dumps(session)) > 4 * TPM
    with Proxy(config, environment) as proxy:
        answer = CHAT.post(proxy, session)
    assert answer.status_code == status
    if status == 200:
        assert answer.headers["x-ctx-hooks"].startswith("compressed")
