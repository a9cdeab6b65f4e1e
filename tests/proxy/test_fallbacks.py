"""A configured fallback that holds the whole request comes before compression, unless the policy says otherwise."""

import pytest
from configurations import WINDOW, deployment
from routes import GEMINI, MESSAGES, NAMES, ROUTES

CHAT, NOWHERE = ROUTES[0], "http://127.0.0.1:9"
"""On that port nothing listens."""
UNKNOWN, LARGE = 200_000, 900_000
KINDS = {
    "known": (WINDOW, ["roomy"], [], True),
    "unknown": (UNKNOWN, ["roomy"], [("served", 400)], True),
    "chain": (WINDOW, ["narrower", "roomy"], [], True),
    "narrow": (WINDOW, ["narrower"], [], False),
    "down": (WINDOW, ["absent"], [], False),
    "refusing": (WINDOW, ["refuser"], [("less", 400)], False),
    "unknown-refusing": (UNKNOWN, ["refuser"], [("served", 400), ("less", 400)], False),
    "last": (WINDOW, ["roomy"], [], False),
    "beyond": (WINDOW, ["narrower"], [], False),
}
"""The window as configured, the fallbacks, which attempts are refused, and whether a fallback gets the whole request."""
PROVIDERS = {"openai": "openai", "claude": "anthropic", "gemini": "gemini"}
FALLBACKS = [
    {f"full-{kind}-{name}": [f"{group}-{name}" for group in groups]}
    for kind, (_, groups, *_) in KINDS.items()
    for name in PROVIDERS
]
CASES = [
    (route, n % 2 == 1, kind) for m, kind in enumerate(KINDS) for n, route in enumerate(ROUTES) if (n + m) % 3 == 0
]  # fmt: skip
"""Each kind on two routes, each route streamed or whole."""


def groups(url):
    for name, provider in PROVIDERS.items():
        for kind, (window, *_) in KINDS.items():
            model, policy = "tiny" if kind == "beyond" else "served", {"fallbacks": "last"} if kind == "last" else {}
            yield deployment(url, f"full-{kind}-{name}", f"{provider}/{model}", max_input_tokens=window, ctx_hooks=policy)
        for group, model, window in (("roomy", "wide", LARGE), ("narrower", "less", 2_500), ("refuser", "less", LARGE)):
            yield deployment(url, f"{group}-{name}", f"{provider}/{model}", max_input_tokens=window)
        yield deployment(NOWHERE, f"absent-{name}", f"{provider}/wide", max_input_tokens=LARGE)


def checked(url):
    return [made for made in groups(url) if made["model_name"].endswith("-openai")]


def ask(route, kind, proxy, provider, **fields):
    """Return the answer, and the model and status of each of the provider's requests; `fields` go into the request."""
    name = {MESSAGES: "claude", GEMINI: "gemini"}.get(route, "openai")
    answer = route.ask(proxy, group=f"full-{kind}-{name}", **fields)
    assert answer.status_code == 200, answer.text
    return answer, [(r["model"], r["status"]) for r in provider.requests()]


@pytest.mark.parametrize(
    ("route", "stream", "kind"), CASES, ids=[f"{NAMES[ROUTES.index(route)]}-{kind}" for route, _, kind in CASES]
)
def test_fallback_that_holds_request_comes_before_compression(route, stream, kind, proxy, provider):
    _, _, refused, is_whole = KINDS[kind]
    answer, asked = ask(route, kind, proxy, provider, stream=stream)
    size = provider.requests()[-1]["input_tokens"]
    if kind == "beyond":  # no retry helps: the fallback is fitted
        assert {model for model, _ in asked[:-1]} == {"tiny"}
        assert asked[-1] == ("less", 200)
        return
    assert asked[-1] == ("wide" if is_whole else "served", 200)
    assert set(asked[:-1]) <= set(refused), "each limit is learned from one refusal"
    assert len(asked) <= 1 + len(refused)
    assert size > 2 * WINDOW if is_whole else size <= WINDOW
    told = answer.headers["x-ctx-hooks"]
    assert told == "fallback" if is_whole else told.startswith(("compressed", "retried"))


def test_disabled_fallbacks_leave_own_model(proxy, provider):
    assert ask(CHAT, "known", proxy, provider, disable_fallbacks=True)[1] == [("served", 200)]


@pytest.mark.parametrize("fallbacks", [
    {"fallbacks": ["roomy-openai"]}, {"context_window_fallbacks": [{"full-narrow-openai": ["roomy-openai"]}]},
    {"fallbacks": [{"model": "roomy-openai", "max_tokens": 7}]},
], ids=["plain", "for an overflow", "entry"])  # fmt: skip
def test_callers_fallback_comes_before_compression(fallbacks, proxy, provider):
    assert ask(CHAT, "narrow", proxy, provider, **fallbacks)[1] == [("wide", 200)]


@pytest.mark.parametrize(("kind", "expected"), [
    ("known", "wide"), ("unknown", "wide"), ("narrow", "served"), ("last", "served"),
])  # fmt: skip
def test_router_that_checks_windows_chooses_alike(kind, expected, checking, provider):
    assert ask(CHAT, kind, checking, provider)[1][-1] == (expected, 200)
