"""A proxy that LiteLLM shows the metrics of, and a run through it whose figures are known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from configurations import GENERAL, WINDOW, configuration, deployment, importable
from proxies import Proxy
from routes import CHAT
from summariser import summariser

from ctx_hooks.testing import Call, FakeProvider, ProviderSettings, Reply, agent_session

TIGHT = 26_000
"""Holds a session of 25,000 tokens, but not its answer."""
ROOMY = 60_000
SOON = {"soft_fraction": 0.3}
"""Has a session of 25,000 tokens summarised by a model of this window."""
AUTH = """
from litellm.proxy._types import UserAPIKeyAuth

async def user_api_key_auth(request, api_key):
    team = api_key.removeprefix("sk-team-")
    return UserAPIKeyAuth(api_key=api_key, team_id=team, team_alias=team.upper(), key_alias=f"key of {team}")
"""
LISTENER = """
import dataclasses, json
import ctx_hooks

handler = ctx_hooks.proxy_handler_instance

def plain(value):
    if dataclasses.is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return dict(value)

def tell(event):
    print("heard", json.dumps(event, default=plain), flush=True)

for name in ("decision", "overflow", "answer", "silent_truncation", "limit_learned", "after_summary", "archive"):
    ctx_hooks.on(name, tell)
"""
"""Prints every event, after the sinks have heard it."""
ROUNDS = (1, 2)
SMALL = [{"role": "user", "content": "Hello."}]
SMALL_ONES = 3
LARGE_ONES = (("compressed", "red"), ("compressed", "blue"), ("observed", "blue"), ("exceeded", "blue"))
ATTEMPTS = {
    ("compressed", "red", "compressed", "budget", "enforce"): 1,
    ("compressed", "blue", "compressed", "budget", "enforce"): 1,
    ("retrieved", "red", "compressed", "budget", "enforce"): 2,
    ("observed", "blue", "compressed", "budget", "observe"): 1,
    ("exceeded", "blue", "compressed", "budget", "observe"): 1,
    ("summarised", "red", "fits", "none", "enforce"): 1,
    ("answers", "red", "fits", "none", "enforce"): 1,
    ("unsummarised", "blue", "fits", "none", "enforce"): 1,
    ("refuses", "blue", "fits", "none", "enforce"): 1,
    ("rescued-{n}", "blue", "fits", "none", "enforce"): 1,
    ("rescued-{n}", "blue", "retried", "overflow", "enforce"): 1,
    ("hopeless-{n}", "red", "fits", "none", "enforce"): 1,
    ("hopeless-{n}", "red", "retried", "overflow", "enforce"): 1,
}
"""What one round's large requests are sent as: group, team, decision, trigger and mode. A summary's call is a request of its
own, as is the one that follows a retrieval."""
ENDS = {
    **{(g, team, end, mode): n for (g, team, end, _, mode), n in ATTEMPTS.items() if "{n}" not in g},
    ("rescued-{n}", "blue", "retried", "enforce"): 1,
    ("hopeless-{n}", "red", "failed", "enforce"): 1,
}
"""What they end in, each request once."""
OVERFLOWS = {("rescued-{n}", "blue"): 1, ("hopeless-{n}", "red"): 2}
BEYOND_WINDOW = {("rescued-{n}", "blue", "enforce"): 1}
SUMMARIES = {("summarised", "red", "accepted"): 1, ("unsummarised", "blue", "rejected"): 1}
RETRIEVALS = {("retrieved", "red", "archive"): 1}
WRITERS = {"summarised": "answers", "unsummarised": "refuses"}
"""Who summarises the sessions of a group, behind its answer."""


def script(fmt: Any, payload: Mapping[str, Any], answered: int) -> Reply:
    """Answer as a model that asks once for what was cut, where it is offered the tool."""
    handles = re.findall(r"ctx_retrieve\(([a-z2-7]{12})\)", json.dumps(payload["messages"]))
    called = any(
        call["function"]["name"] == "ctx_retrieve" for m in payload["messages"] for call in m.get("tool_calls") or ()
    )
    if handles and not called:
        return Reply(calls=[Call("ctx_retrieve", {"handle": handles[0], "limit": 100})])
    return summariser(fmt, payload, answered)


@contextmanager
def metered(tmp_path_factory: Any) -> Iterator[tuple[Proxy, FakeProvider]]:
    """Serve one group for each end that a request can have; a group that is learned from has one for each round."""
    folder = tmp_path_factory.mktemp("metered")
    for name, code in (("metered_auth", AUTH), ("metered_listener", LISTENER)):
        environment = importable(folder, name, code)
    windows = {"tiny": 60, **dict.fromkeys(("large", *WRITERS.values()), 1_000_000)}
    with FakeProvider(ProviderSettings(window_tokens=WINDOW, windows=windows), script) as provider:

        def group(name: str, model: str, **info: Any) -> dict[str, Any]:
            return deployment(provider.url, name, model, id=f"id-{name}", base_model="gpt-4o-mini", **info)

        models = (
            group("untouched", "openai/large"),
            group("compressed", "openai/large", max_input_tokens=TIGHT),
            group("retrieved", "openai/large", max_input_tokens=TIGHT, ctx_hooks={"retrieval": "always"}),
            group("observed", "openai/large", max_input_tokens=TIGHT, ctx_hooks={"mode": "observe"}),
            group("exceeded", "openai/large", max_input_tokens=WINDOW, ctx_hooks={"mode": "observe"}),
            *(
                group(name, "openai/large", max_input_tokens=ROOMY, ctx_hooks={"summary": {"model": writer, **SOON}})
                for name, writer in WRITERS.items()
            ),
            *(group(writer, f"openai/{writer}") for writer in WRITERS.values()),
            *(group(f"rescued-{n}", "openai/served") for n in ROUNDS),
            *(group(f"hopeless-{n}", "openai/tiny") for n in ROUNDS),
        )
        config = configuration(
            provider.url,
            *models,
            litellm_settings={"callbacks": ["metered_listener.handler", "prometheus"]},
            general_settings={**GENERAL, "custom_auth": "metered_auth.user_api_key_auth"},
        )
        with Proxy(config, environment) as proxy:
            yield proxy, provider


def ask(proxy: Proxy, group: str, team: str, seed: int = 0, **fields: Any) -> httpx.Response:
    """Send an agent session of about 25,000 tokens, or the given messages, as a team."""
    payload = {**agent_session("openai-chat", model=group, seed=seed), **fields}
    return CHAT.post(proxy, payload, headers={"authorization": f"Bearer sk-team-{team}"})


def run(proxy: Proxy, n: int) -> None:
    """Send the requests of one round, and wait until their answers and summaries were recorded."""
    answers, summaries = (len(events(proxy, name)) for name in ("answer", "after_summary"))
    for _ in range(SMALL_ONES):
        assert ask(proxy, "untouched", "red", messages=SMALL).status_code == httpx.codes.OK
    worded = ((group, team) for group, team, _ in (*SUMMARIES, *RETRIEVALS))
    for group, team in (*LARGE_ONES, *worded, (f"rescued-{n}", "blue")):
        assert ask(proxy, group, team, seed=n).status_code == httpx.codes.OK
    assert ask(proxy, f"hopeless-{n}", "red", seed=n).status_code == httpx.codes.BAD_REQUEST
    answers += SMALL_ONES + len(LARGE_ONES) + 2 * len(SUMMARIES) + 2 * len(RETRIEVALS) + 1
    summaries += len(SUMMARIES)
    proxy.wait_until(lambda: len(events(proxy, "after_summary")) == summaries, f"{summaries} summaries")
    proxy.wait_until(lambda: len(events(proxy, "answer")) == answers, f"{answers} answers")


def events(proxy: Proxy, name: str) -> list[dict[str, Any]]:
    """Return the events of that name so far."""
    lines = proxy.log().split("\n")[:-1]  # the last may be half written
    heard = [json.loads(line.removeprefix("heard ")) for line in lines if line.startswith("heard ")]
    return [event for event in heard if event["name"] == name]
