"""A configured fallback that holds the whole request comes before compression, unless the policy says otherwise."""

import pytest
from configurations import WINDOW, deployment
from routes import GEMINI, MESSAGES, NAMES, ROUTES

LAST = {"fallbacks": "last"}
NOWHERE = "http://127.0.0.1:9"
"""A port on which nothing listens."""
KINDS = {
    "known": (WINDOW, ["roomy"], {}),
    "unknown": (200_000, ["roomy"], {}),
    "narrow": (WINDOW, ["narrower"], {}),
    "chain": (WINDOW, ["narrower", "roomy"], {}),
    "down": (WINDOW, ["absent"], {}),
    "refusing": (WINDOW, ["refuser"], {}),
    "unknown-refusing": (200_000, ["refuser"], {}),
    "last": (WINDOW, ["roomy"], LAST),
    "beyond": (WINDOW, ["half"], {}),
}
PROVIDERS = {"openai": "openai", "claude": "anthropic", "gemini": "gemini"}
FALLBACKS = [
    {f"full-{kind}-{name}": [f"{group}-{name}" for group in groups]}
    for kind, (_, groups, _) in KINDS.items()
    for name in PROVIDERS
]


def groups(url):
    for name, provider in PROVIDERS.items():
        for kind, (window, _, policy) in KINDS.items():
            model = "tiny" if kind == "beyond" else "served"
            yield deployment(url, f"full-{kind}-{name}", f"{provider}/{model}", max_input_tokens=window, ctx_hooks=policy)
        yield deployment(url, f"roomy-{name}", f"{provider}/wide", max_input_tokens=900_000)
        yield deployment(url, f"narrower-{name}", f"{provider}/less", max_input_tokens=2_500)
        yield deployment(url, f"half-{name}", f"{provider}/less", max_input_tokens=2_500)
        yield deployment(url, f"refuser-{name}", f"{provider}/less", max_input_tokens=900_000)
        yield deployment(NOWHERE, f"absent-{name}", f"{provider}/wide", max_input_tokens=900_000)


def checked(url):
    yield from (made for made in groups(url) if made["model_name"].endswith("-openai"))


def ask(route, kind, proxy, provider, **fields):
    """Return the answer and the provider's requests; `fields` go into the request."""
    provider.reset()
    name = {MESSAGES: "claude", GEMINI: "gemini"}.get(route, "openai")
    answer = route.ask(proxy, group=f"full-{kind}-{name}", **fields)
    return answer, [(r["model"], r["status"]) for r in provider.requests()], provider.requests()


def in_turn(kinds):
    """Return each kind on two routes or three, each route streamed or whole, and an id for each of them."""
    cases = [(route, n % 2 == 1, kind) for m, kind in enumerate(kinds) for n, route in enumerate(ROUTES) if (n + m) % 3 == 0]
    return {"argvalues": cases, "ids": [f"{NAMES[ROUTES.index(route)]}-{kind}" for route, _, kind in cases]}


WHOLE = {"known": [("wide", 200)], "unknown": [("served", 400), ("wide", 200)], "chain": [("wide", 200)]}
BEFORE = {"narrow": [], "down": [], "refusing": [("less", 400)], "last": []}
BEFORE["unknown-refusing"] = [("served", 400), ("less", 400)]


@pytest.mark.parametrize(("route", "stream", "kind"), **in_turn(WHOLE))
def test_roomy_fallback_gets_whole_request(route, stream, kind, proxy, provider):
    answer, asked, requests = ask(route, kind, proxy, provider, stream=stream)
    assert answer.status_code == 200, answer.text
    assert asked in (WHOLE[kind], WHOLE[kind][-1:]), "a limit is learned from one refusal"
    assert requests[-1]["input_tokens"] > 2 * WINDOW, "nothing is removed"
    assert answer.headers["x-ctx-hooks"] == "fallback"


@pytest.mark.parametrize(("route", "stream", "kind"), **in_turn(BEFORE))
def test_compression_follows_fallbacks_that_do_not_help(route, stream, kind, proxy, provider):
    answer, asked, requests = ask(route, kind, proxy, provider, stream=stream)
    assert answer.status_code == 200, answer.text
    assert asked[-1] == ("served", 200)
    assert set(asked[:-1]) <= set(BEFORE[kind]), "each limit is learned from one refusal"
    assert len(asked) <= 1 + len(BEFORE[kind])
    assert requests[-1]["input_tokens"] <= WINDOW
    assert answer.headers["x-ctx-hooks"].startswith(("compressed", "retried"))


def test_fallback_is_fitted_if_no_retry_helps(proxy, provider):
    answer, asked, _ = ask(ROUTES[0], "beyond", proxy, provider)
    assert answer.status_code == 200, answer.text
    assert {model for model, _ in asked[:-1]} == {"tiny"}
    assert asked[-1] == ("less", 200)


def test_disabled_fallbacks_leave_own_model(proxy, provider):
    answer, asked, _ = ask(ROUTES[0], "known", proxy, provider, disable_fallbacks=True)
    assert (answer.status_code, asked) == (200, [("served", 200)])


@pytest.mark.parametrize("fallbacks", [
    {"fallbacks": ["roomy-openai"]}, {"context_window_fallbacks": [{"full-narrow-openai": ["roomy-openai"]}]},
    {"fallbacks": [{"model": "roomy-openai", "max_tokens": 7}]},
], ids=["plain", "for an overflow", "entry"])  # fmt: skip
def test_callers_fallback_comes_before_compression(fallbacks, proxy, provider):
    answer, asked, _ = ask(ROUTES[0], "narrow", proxy, provider, **fallbacks)
    assert (answer.status_code, asked) == (200, [("wide", 200)]), answer.text


@pytest.mark.parametrize(("kind", "expected"), [
    ("known", "wide"), ("unknown", "wide"), ("narrow", "served"), ("last", "served"),
])  # fmt: skip
def test_router_that_checks_windows_chooses_alike(kind, expected, checking, provider):
    answer, asked, _ = ask(ROUTES[0], kind, checking, provider)
    assert answer.status_code == 200, answer.text
    assert asked[-1] == (expected, 200)
