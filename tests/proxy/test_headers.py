"""The response headers say what was done with a request: on every route, in an answer, a stream and an error."""

from __future__ import annotations

import httpx
import pytest
from configurations import WINDOW, deployment
from routes import ROUTES, Route

from ctx_hooks.testing import agent_session

KINDS = {"chat": "openai", "claude": "anthropic", "gemini": "gemini"}
CHAT_TO_ANTHROPIC = Route("/v1/chat/completions", "openai-chat", "claude", "", "")
RESPONSES_TO_ANTHROPIC = Route("/v1/responses", "openai-responses", "claude", "", "")
ALL_ROUTES = (*ROUTES, CHAT_TO_ANTHROPIC, RESPONSES_TO_ANTHROPIC)


def named(route):
    return f"{route.path.strip('/')} to {KINDS[route.group]}"


EVERYWHERE = pytest.mark.parametrize(("n", "route"), list(enumerate(ALL_ROUTES)), ids=list(map(named, ALL_ROUTES)))
"""The mode changes from route to route and from one end of a request to the next."""


def groups(url):
    ends = {"fitting": ("large", {}), "compressed": ("large", {"max_input_tokens": WINDOW}), "failed": ("tiny", {})}
    ends |= {f"rescued-{n}": ("served", {}) for n in range(len(ALL_ROUTES))}
    for end, (model, info) in ends.items():
        for to, kind in KINDS.items():
            yield deployment(url, f"{end}-{to}", f"{kind}/{model}", **info)


def ask(proxy, route, end, *, stream):
    """Return the plugin's headers of an answer, by the ends of their names, and its status."""
    payload = agent_session(route.fmt, turns=6, result_chars=2_500, model=f"{end}-{route.group}")
    answer = route.post(proxy, {**payload, "stream": stream})
    told = {name.removeprefix("x-ctx-hooks"): v for name, v in answer.headers.items() if name.startswith("x-ctx-hooks")}
    return told, answer.status_code


@EVERYWHERE
def test_an_untouched_request_has_no_figures(proxy, n, route):
    told, status = ask(proxy, route, "fitting", stream=n % 2 == 0)
    assert status == httpx.codes.OK
    assert told == {"": "fits", "-decision": "fits", "-attempts": "1", "-policy": "defaults"}


@EVERYWHERE
@pytest.mark.parametrize(("end", "attempts"), [("compressed", 1), ("retried", 2)])
def test_what_was_made_smaller_has_its_figures_and_how_often_it_was_sent(proxy, provider, n, route, end, attempts):
    group = end if end == "compressed" else f"rescued-{n}"
    told, status = ask(proxy, route, group, stream=(n + attempts) % 2 == 0)
    assert status == httpx.codes.OK
    assert len(provider.requests()) == attempts
    before, after = int(told.pop("-tokens-before")), int(told.pop("-tokens-after"))
    assert WINDOW < before < 2 * WINDOW
    assert 0 < after < WINDOW
    done = f"{end}; before={before}; after={after}"
    assert told == {"": done, "-decision": end, "-attempts": str(attempts), "-policy": "defaults"}


NO_PLACE = pytest.mark.xfail(
    strict=True,
    raises=KeyError,
    reason="LiteLLM's endpoint /v1/messages makes the headers of its errors itself and asks no hook for any",
)


@pytest.mark.parametrize(
    ("n", "route"),
    [pytest.param(n, r, marks=NO_PLACE if r.path == "/v1/messages" else ()) for n, r in enumerate(ALL_ROUTES)],
    ids=list(map(named, ALL_ROUTES)),
)
def test_an_error_has_those_of_the_last_attempt_that_was_sent(proxy, provider, n, route):
    told, status = ask(proxy, route, "failed", stream=n % 2 == 1)
    assert status == httpx.codes.BAD_REQUEST
    assert told["-decision"] == "failed"
    assert told[""].startswith(f"failed; before={told['-tokens-before']}; after={told['-tokens-after']}")
    assert int(told["-tokens-after"]) < int(told["-tokens-before"])
    assert told["-attempts"] == str(len(provider.requests()))
    assert told["-policy"] == "defaults"
