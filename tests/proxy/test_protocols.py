"""Whatever protocol a deployment speaks, a session overflows once at most, and not at all where the window is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pytest
from configurations import PLUGIN, configuration, importable
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from protocols import PROTOCOLS
from proxies import Proxy
from routes import CHAT

from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session

WINDOW = 8_000
BELIEVED = 200_000
TURNS = 25
KNOWN_TURNS = range(10, 18)
"""Those around which a session outgrows a known window, and the compacted session once more."""
LEAST_FRACTION = 0.4
"""A session is compacted to half of the window or a little below."""
TRUNCATED_WINDOW = 4_000
"""Of a provider that cuts what is longer: a session has to outgrow it several times before that shows for certain."""
AWS = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region_name": "us-east-1"}
LOGGED = """
from litellm.integrations.custom_logger import CustomLogger

class Logged(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        print(f"logged {kwargs['litellm_call_id']}", flush=True)

handler = Logged()
"""
"""A second callback: LiteLLM tells them in their order, so the plugin has learned by then."""


@dataclass(frozen=True)
class Row:
    """A deployment's parameters, where the provider's address is {url}, and how that provider words an overflow."""

    model: str
    wording: str
    base: str = "{url}"
    params: dict[str, Any] = field(default_factory=dict)
    truncates: bool = False
    unbilled: tuple[str, ...] = ()
    """Modes in which LiteLLM reads none of the usage that the provider states."""
    tells_in_stream: bool = False
    """Whether the provider refuses inside a stream too, in a form that LiteLLM reads."""


CLAUDE = "anthropic.claude-3-5-sonnet-20240620-v1:0"
VERTEX = {"vertex_project": "p", "vertex_location": "us-east5"}
ROWS = {
    "bedrock-converse": Row(f"bedrock/converse/{CLAUDE}", "bedrock_converse", params=AWS, tells_in_stream=True),
    "bedrock-nova": Row("bedrock/converse/amazon.nova-pro-v1:0", "bedrock_nova", params=AWS, tells_in_stream=True),
    "bedrock-invoke": Row(f"bedrock/invoke/{CLAUDE}", "bedrock_invoke", params=AWS, tells_in_stream=True),
    "vertex-claude": Row("vertex_ai/claude-sonnet-4@20250514", "anthropic", params=VERTEX, tells_in_stream=True),
    "cohere": Row("cohere_chat/command-r-plus", "cohere_excess", "{url}/v2/chat", unbilled=("streamed",)),
    "cohere-without-count": Row("cohere_chat/command-r-plus", "cohere", "{url}/v2/chat", unbilled=("streamed",)),
    "mistral": Row("mistral/mistral-large-latest", "mistral", "{url}/mistral/v1", tells_in_stream=True),
    "ollama-chat": Row("ollama_chat/served", "ollama", tells_in_stream=True),
    "ollama-chat-truncating": Row("ollama_chat/served", "ollama", truncates=True),
    "ollama-generate": Row("ollama/served", "ollama", tells_in_stream=True),
    "ollama-generate-truncating": Row("ollama/served", "ollama", truncates=True),
    "predibase": Row("predibase/served", "tgi", unbilled=("whole", "streamed"), tells_in_stream=True),
    "watsonx": Row("watsonx/ibm/served", "watsonx", unbilled=("streamed",), params={"project_id": "p", "token": "t"}),
    "huggingface": Row("huggingface/served", "tgi", "{url}/v1", tells_in_stream=True),
}
REFUSING = [name for name, row in ROWS.items() if not row.truncates]
TRUNCATING = [name for name, row in ROWS.items() if row.truncates]
MODES = {"whole": False, "streamed": True}
OPENINGS = {"at-once": False, "after-opening": True}
WINDOWS = {"unknown": BELIEVED, "known": WINDOW, **dict.fromkeys(OPENINGS, BELIEVED)}
"""What the proxy believes of the window, by what a group of deployments is for."""


def group_of(name: str, use: str, mode: str) -> str:
    return f"{name}-{use}-{mode}"


def google_credentials(url: str) -> dict[str, str]:
    """Return a service account with a key of its own, whose tokens the fake provider gives out."""
    key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    forms = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    account = {"type": "service_account", "project_id": "p", "client_email": "a@p", "token_uri": f"{url}/token"}
    return {**account, "private_key_id": "k", "private_key": key.private_bytes(*forms).decode()}


def model_list(url: str) -> list[dict[str, Any]]:
    google = {"vertex_credentials": google_credentials(url)}
    return [
        {
            "model_name": group_of(name, use, mode),
            "litellm_params": {
                "model": row.model,
                "api_base": row.base.format(url=url),
                "api_key": "k",
                **row.params,
                **(google if row.model.startswith("vertex_ai/") else {}),
            },
            "model_info": {"id": group_of(name, use, mode), "max_input_tokens": window},
        }
        for name, row in ROWS.items()
        for use, window in WINDOWS.items()
        for mode in MODES
    ]


@pytest.fixture(scope="module")
def speaking(tmp_path_factory):
    environment = importable(tmp_path_factory.mktemp("logged"), "logged", LOGGED)
    with FakeProvider(ProviderSettings(tokens_factor=1.2), protocols=PROTOCOLS) as provider:
        settings = {"callbacks": [PLUGIN, "logged.handler"], "drop_params": True}
        config = configuration(provider.url, *model_list(provider.url), litellm_settings=settings)
        with Proxy(config, {**environment, "PREDIBASE_TENANT_ID": "t"}) as proxy:
            yield proxy, provider


def prepared(provider, name, **settings):
    """Let the provider behave as a row says."""
    row = ROWS[name]
    if row.model.startswith("vertex_ai/") and (find_spec("google") is None or find_spec("google.auth") is None):
        pytest.skip("LiteLLM asks google-auth for Vertex's credentials, which is not installed")
    window = TRUNCATED_WINDOW if row.truncates else WINDOW
    forms = {"refused_form": "wording", "refused_after_opening": False}
    provider.reset(
        **{**forms, "wording": row.wording, "silent_truncation": row.truncates, "window_tokens": window, **settings}
    )


def run(speaking, name, use, mode, turns):
    """Run a session turn by turn, and return the provider's records of it.

    What an answer shows is learned behind it: only after the first does what follows depend on it.
    """
    proxy, provider = speaking
    prepared(provider, name)
    session = agent_session("openai-chat", model=group_of(name, use, mode), turns=TURNS, result_chars=2_000)
    for turn in turns:
        sent = session["messages"][: 2 + 2 * turn]
        answer = CHAT.post(proxy, {**session, "messages": sent, "stream": MODES[mode]})
        assert answer.status_code == 200, answer.text
        assert "Answer" in answer.text, answer.text
        if turn == turns[0] or ROWS[name].truncates:
            proxy.wait_for_log(f"logged {answer.headers['x-litellm-call-id']}")
    return provider.requests()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REFUSING)
def test_a_session_of_unknown_window_overflows_once_and_every_turn_is_answered(name, mode, speaking):
    records = run(speaking, name, "unknown", mode, range(1, TURNS + 1))
    assert [r["status"] for r in records].count(200) == TURNS
    refused = [r for r in records if r["status"] != 200]
    assert [r["error"] for r in refused if r["input_tokens"] <= WINDOW] == []
    assert len(refused) == 1
    after = [r["input_tokens"] for r in records[records.index(refused[0]) + 1 :]]
    assert min(after) > LEAST_FRACTION * WINDOW, "what was sent is not taken for what the client sent"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", REFUSING)
def test_a_session_of_known_window_never_overflows(name, mode, speaking):
    """Where nothing says how many tokens the provider counts, the first overflow is what says it."""
    records = run(speaking, name, "known", mode, KNOWN_TURNS)
    refused = [r["input_tokens"] for r in records if r["status"] != 200]
    assert min(refused, default=WINDOW + 1) > WINDOW
    assert len(refused) <= (mode in ROWS[name].unbilled)


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.tells_in_stream])
def test_an_overflow_told_inside_a_stream_is_retried_once(name, opening, speaking):
    proxy, provider = speaking
    prepared(provider, name, refused_form="nested", refused_after_opening=OPENINGS[opening])
    session = agent_session("openai-chat", model=group_of(name, opening, "streamed"), turns=12, result_chars=2_000)
    answer = CHAT.post(proxy, {**session, "messages": session["messages"][:-1], "stream": True})
    assert answer.status_code == 200, answer.text
    assert "Answer" in answer.text, answer.text
    assert [r["status"] == 200 for r in provider.requests()] == [False, True]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", TRUNCATING)
def test_what_is_truncated_in_silence_is_seen_and_what_follows_fits(name, mode, speaking):
    proxy, _ = speaking
    records = run(speaking, name, "unknown", mode, range(1, TURNS + 1))
    assert len(records) == TURNS
    assert f"deployment {group_of(name, 'unknown', mode)}" in proxy.log()
    above = [r["input_tokens"] > TRUNCATED_WINDOW for r in records]
    assert any(above)
    assert above[-5:] == [False] * 5
    assert [b for a, b in pairwise(above) if a != b] == [True, False], "what was seen once holds"
