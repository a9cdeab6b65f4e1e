"""What a server before the model refuses: bytes, an output above an exclusive range, a window with status 401."""

import json

import pytest
from configurations import deployment
from fastapi import Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from routes import CHAT, MESSAGES
from strategies import screenshots

from ctx_hooks.testing import agent_session

MOST_BYTES, WINDOW = 300_000, 128_000
HTML = "<html>\r\n<head><title>413 Request Entity Too Large</title></head>\r\n<body>nginx</body>\r\n</html>"
RANGE = "a maxOutputTokens value of {} but the supported range is from 1 (inclusive) to 65537 (exclusive). Update the value."
MODELS = {CHAT: "openai/gateway", MESSAGES: "anthropic/gateway"}
each_route = pytest.mark.parametrize("route", MODELS, ids=lambda route: route.fmt)


def elsewhere_groups(url):
    for kind in ("nginx", "anthropic", "moonshot", "range", "kimi"):
        for route, model in MODELS.items():
            info = {"max_input_tokens": 1_000_000 if kind == "range" else WINDOW, "id": f"id-{kind}-{route.fmt}"}
            yield deployment(url, f"{kind}-{route.fmt}", f"{model}-{kind}", **info)


def refusal_of(body, kind):
    size, output = len(json.dumps(body)), body.get("max_tokens") or 0
    if kind == "range" and output > 65_536:
        return JSONResponse({"error": {"message": RANGE.format(output), "status": "INVALID_ARGUMENT", "code": 400}}, 400)
    if kind == "kimi" and size > 60_000:
        error = {"type": "authentication_error", "message": "k9-12k supports only 12K context."}
        return JSONResponse({"type": "error", "error": error}, 401)
    if kind in ("range", "kimi") or size <= MOST_BYTES:
        return None
    if kind == "nginx":
        return HTMLResponse(HTML, 413)
    text = f"total message size {size} exceeds limit {MOST_BYTES}"
    if kind == "moonshot":
        return JSONResponse({"error": {"message": text, "type": "invalid_request_error"}}, 400)
    error = {"type": "request_too_large", "message": "Request exceeds the maximum size"}
    return JSONResponse({"type": "error", "error": error}, 413)


@pytest.fixture
def received(provider, elsewhere, pass_on):
    """The bodies and statuses of the requests that reach the gateway, which passes on what it does not refuse."""
    provider.reset(windows={}, window_tokens=WINDOW, strict=False)
    found = []

    async def answer(request: Request) -> Response:
        body = await request.json()
        refused = refusal_of(body, body["model"].rsplit("-", 1)[1])
        found.append((body, 200 if refused is None else refused.status_code))
        return await pass_on(request) if refused is None else refused

    elsewhere.answer = answer
    return found


def long_session(route, kind, turns=30, max_tokens=8_000):
    session = agent_session(route.fmt, model=f"{kind}-{route.fmt}", turns=turns, result_chars=4_000)
    return {**session, "max_tokens": max_tokens}


def statuses_of(proxy, route, payload, received):
    """Return the statuses of the attempts at a request, which is answered."""
    received.clear()
    answer = route.post(proxy, payload)
    assert answer.status_code == 200, answer.text
    return [status for _, status in received]


@pytest.mark.parametrize(("kind", "most_attempts", "route"), [
    ("nginx", 3, CHAT), ("anthropic", 3, MESSAGES), ("moonshot", 2, CHAT),
], ids=["nginx", "anthropic", "moonshot"])  # fmt: skip
def test_request_of_too_many_bytes_is_retried_smaller(kind, most_attempts, route, proxy, received):
    shown = {"model": f"{kind}-{route.fmt}", "messages": screenshots(route.fmt, 12), "max_tokens": 8_000}
    assert len(statuses_of(proxy, route, shown, received)) <= most_attempts
    sizes = [len(json.dumps(body)) for body, _ in received]
    assert sizes == sorted(sizes, reverse=True)
    assert {body["max_tokens"] for body, _ in received} == {8_000}
    whole = long_session(route, kind)
    assert statuses_of(proxy, route, whole, received) == [200]
    assert len(received[0][0]["messages"]) == len(whole["messages"]), "nothing learned"


@each_route
def test_output_above_exclusive_range_is_lowered_once(route, proxy, received):
    session = long_session(route, "range", turns=8, max_tokens=167_538)
    for asked in ([167_538, 65_536], [65_536]):
        statuses_of(proxy, route, session, received)
        assert [body["max_tokens"] for body, _ in received] == asked
        assert len({json.dumps(body["messages"]) for body, _ in received}) == 1


@each_route
def test_overflow_with_status_401_cools_nothing_down(route, proxy, received):
    session = long_session(route, "kimi", max_tokens=500)
    assert statuses_of(proxy, route, session, received) == [401, 200]
    assert statuses_of(proxy, route, long_session(route, "kimi", turns=2, max_tokens=500), received) == [200]
    assert statuses_of(proxy, route, session, received) == [200], "the limit is known"
