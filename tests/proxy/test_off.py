"""A proxy with the plugin switched off, in any way, is a proxy without it: upstream, at the client, and in its errors.

So is one that observes. What each scope of a policy sets, tests/policy proves; here, that nothing else is done.
"""

import json
import re

import pytest
from configurations import deployment
from routes import CHAT, MODELS, NAMES, ROUTES

from ctx_hooks.testing import agent_session

OFF = {"ctx_hooks": {"mode": "off"}}
CALLERS = {
    "off-team": {"team_metadata": OFF},
    "off-observed-team": {"team_metadata": {"ctx_hooks": {"mode": "observe"}}},
    "off-key": {"metadata": OFF},
    "off-organization": {"organization_metadata": OFF},
}
POLICIES = {"models": {"off-*-model": "off", "off-*-observed": "observe"}, "sessions": {"off:*": "off"}}
WINDOW = 1_500
WAYS = ("team", "key", "organization", "model", "info", "session", "request", "observed-team", "observed")
FLAT = {"code": "InvalidParameter", "message": "MESSAGE", "request_id": "r"}
KINDS = {
    "answer": {"window_tokens": 1_000_000}, "overflow": {}, "unknown": {"wording": "cerebras"},
    "in-stream": {"refused_body": f"data: {json.dumps({'error': FLAT})}\n\n"}, "rate": {"wording": "rate_limited"},
    "answered": {"refused_body": json.dumps(FLAT)},
}  # fmt: skip
"""An answer, an overflow that LiteLLM knows, one that it does not know, two in a 200 answer, and a rate limit."""
CHANGING = re.compile(
    rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|[0-9a-f]{32}|(?:chatcmpl|resp|msg|gen)[-_][\w=+/-]+"
    rb"|\"created(?:_at)?\": ?[\d.]+"
)
"""What differs between any two answers: ids and times."""


def compared(url):
    for name in NAMES:
        for way in ("served", "model", "observed", "info"):
            group, policy = f"off-{name}-{way}", OFF if way == "info" else {}
            yield deployment(
                url, group, MODELS.get(name, "openai/served"), max_input_tokens=WINDOW, id=f"id-{group}", **policy
            )


def seen(proxy, provider, route, name, way, *, stream, kind, asked=True):
    """Return what the client and the provider saw of a request, without what differs between any two requests.

    `asked`: whether the request asks the plugin for something in its metadata.
    """
    provider.reset(**{"wording": "openai", "window_tokens": WINDOW, "refused_body": "", **KINDS[kind]})
    headers = {"authorization": f"Bearer sk-off-{way}", "x-litellm-call-id": "an id"}
    headers |= {"request": {"x-ctx-hooks": "off"}, "session": {"x-session-id": "off:1"}}.get(way, {})
    wishes = {"metadata": {"ctx_hooks": "observe"} if asked else {}, "disable_fallbacks": True}
    group = f"off-{name}-{way if way in ('model', 'info', 'observed') else 'served'}"
    session = agent_session(route.fmt, turns=6, result_chars=1_000, model=group)
    answer = route.post(proxy, {**session, **wishes, "stream": stream}, headers=headers)
    told = {
        "status": answer.status_code,
        "headers": {k: v for k, v in answer.headers.items() if not varies(k)},
        "body": CHANGING.sub(b"*", answer.content),
    }
    upstream = [
        {"payload": r["payload"], "status": r["status"], "headers": {k: v for k, v in r["headers"].items() if not varies(k)}}
        for r in provider.requests()
    ]
    return told, json.loads(CHANGING.sub(b"*", json.dumps(upstream).encode()))


def varies(header):
    """Whether a header tells of time, load or the process."""
    return header in ("date", "content-length", "traceparent", "host") or any(
        word in header for word in ("duration", "overhead", "spend", "latency", "remaining", "llm_provider-date", "-reset")
    )


CELLS = [
    (*places[n % len(places)], list(KINDS)[n % len(KINDS)], WAYS[(n + n // 10) % len(WAYS)])
    for places in [[(route, name, stream) for route, name in zip(ROUTES, NAMES, strict=True) for stream in (False, True)]]
    for n in range(2 * len(places))
]
"""Two on each route in each mode, with ways and kinds that change from cell to cell."""


@pytest.mark.parametrize(
    ("route", "name", "stream", "kind", "way"), CELLS, ids=["-".join(map(str, cell[1:])) for cell in CELLS]
)
def test_off_and_observe_change_nothing(route, name, stream, kind, way, plain_proxy, proxy, provider):
    """Every upstream body and header, the number of attempts, and what the client gets are those of a proxy without it.

    What a request asks the plugin for goes to no provider.
    """
    ask = {"route": route, "name": name, "way": way, "stream": stream, "kind": kind}
    expected = seen(plain_proxy, provider, **ask, asked=False)
    found = seen(proxy, provider, **ask)
    assert found == expected
    assert not [h for h in found[0]["headers"] if "ctx-hooks" in h]


def test_same_request_is_compressed_when_enforced(proxy, provider):
    """Else the comparison above would compare nothing."""
    told, upstream = seen(proxy, provider, CHAT, "chat", "nobody", stream=False, kind="unknown")
    assert told["status"] == 200
    assert told["headers"]["x-ctx-hooks"].startswith("compressed")
    assert [r["status"] for r in upstream] == [200]
