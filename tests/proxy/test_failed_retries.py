"""A retry that fails for another reason ends as a first attempt that fails so, and an answered retry as a first answer."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from configurations import deployment
from fastapi.responses import JSONResponse, StreamingResponse
from routes import CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES, SIZE

from ctx_hooks.testing import Reply, streams
from ctx_hooks.testing.behaviour import WORDINGS, error_body

ROUTES = {"chat": CHAT, "messages": MESSAGES, "messages-to-openai": MESSAGES_TO_OPENAI, "responses": RESPONSES}
FORMS = {"whole": False, "streamed": True}
FAULTS = (429, 500, 503, 529, 408)
TIMEOUT_SECONDS = 3
MOST_BYTES = 12_000
"""Of a request that the server answers; an agent session of the usual size has 30,000, a short one 3,000."""
SHORT = {"turns": 1, "result_chars": 300}
CASES = [
    (route, ("whole", "streamed")[m % 2], fault)
    for n, route in enumerate(ROUTES)
    for m, fault in enumerate(FAULTS)
    if (n + m) % 2 == 0
]
"""Each fault on two routes, each route with two faults or more."""
ANSWERED = [(route, ("whole", "streamed")[n % 2]) for n, route in enumerate(ROUTES)]
KEPT_HEADERS = ("retry-after", "content-type", "x-litellm-attempted-fallbacks", "x-litellm-attempted-retries")


def group_of(*case):
    return "-".join(map(str, case))


def elsewhere_groups(url):
    """Two groups for each case: one for a request that the server refuses first, one for the same case without that."""
    slow = [(route, "slow", 0) for route in ROUTES]
    others = [("chat", form, 0) for form in ("recovers", "falls-back", "overflows", "pair")]
    for case in (*CASES, *((*case, 0) for case in ANSWERED), *slow, *others):
        for size in ("short", "long"):
            name = f"{group_of(*case)}-{size}"
            for model in (f"{name}-a", f"{name}-b") if case[1] == "pair" else (name,):
                made = deployment(url, name, f"{'anthropic' if case[0] == 'messages' else 'openai'}/{model}")
                made["model_info"]["ctx_hooks"] = {"rescue_attempts": 1 if case[1] == "pair" else 3, "fallbacks": "last"}
                made["litellm_params"] |= {"input_cost_per_token": 0.01, "output_cost_per_token": 0.01}
                if case in slow:
                    made["litellm_params"] |= {"timeout": TIMEOUT_SECONDS, "num_retries": 0}
                yield made
    yield deployment(url, "other-group", "openai/other-model")


@pytest.fixture
def server(elsewhere):
    """Return how the server fails: it refuses what is too long, and `fails` says what it does with all else."""

    class Server:
        fails, seconds, times, spared, retry_after = 0, 0.0, 10**9, "", "0"

        def __init__(self):
            self.asked = []

        async def answer(self, request):
            payload = await request.json()
            fmt = next(r.fmt for r in ROUTES.values() if request.url.path.endswith(r.path[3:]))
            size = len(await request.body())
            spared = payload["model"] == self.spared
            too_long = size > MOST_BYTES and not spared
            fails = bool(self.fails and self.times and not spared)
            self.asked.append((payload["model"], 400 if too_long else self.fails if fails else 200))
            if too_long:
                wording = WORDINGS["anthropic" if fmt == "anthropic" else "openai"]
                _, body = error_body(wording, fmt, limit=MOST_BYTES // 4, input=size // 4)
                return JSONResponse(body, wording.status)
            await asyncio.sleep(self.seconds)
            if fails:
                self.times -= 1
                error = {"type": "overloaded_error", "message": "Not now.", "code": None}
                return JSONResponse({"type": "error", "error": error}, self.fails, headers={"retry-after": self.retry_after})
            whole = streams.whole(fmt, payload, Reply("Answer."), 10, 0)
            if not payload.get("stream"):
                return JSONResponse(whole)
            made = streams.stream(fmt, payload, Reply("Answer."), 10, 0)
            events = streams.response_stream(whole) if fmt == "openai-responses" else made
            return StreamingResponse(events, media_type="text/event-stream")

    made = Server()
    elsewhere.answer = made.answer
    return made


def ask(proxy, case, size, **fields):
    route, form, _ = case
    name = f"{group_of(*case)}-{'long' if size is SIZE else 'short'}"
    return ROUTES[route].ask(proxy, group=name, stream=FORMS.get(form, False), size=size, **fields)


def shown(answer):
    """Return what a client sees of an error, without LiteLLM's remarks on the group and its fallbacks."""
    told = answer.json()["error"]
    told["message"], _, _ = told["message"].partition("\n\nLiteLLM: model group")
    return answer.status_code, told, {name: answer.headers.get(name) for name in KEPT_HEADERS}


@pytest.mark.parametrize("case", CASES, ids=[group_of(*case) for case in CASES])
def test_failed_retry_ends_as_first_attempt_would(case, proxy, server):
    server.fails = case[2]
    direct = ask(proxy, case, SHORT)
    asked, server.asked = [status for _, status in server.asked], []
    retried = ask(proxy, case, SIZE)
    assert [status for _, status in server.asked] == [400, *asked], "repeated as often as a first attempt"
    assert shown(retried) == shown(direct)


def test_retry_that_times_out_ends_as_timeout(proxy, server):
    server.seconds = 10 * TIMEOUT_SECONDS
    with ThreadPoolExecutor() as together:
        answers = list(together.map(lambda route: ask(proxy, (route, "slow", 0), SIZE), ROUTES))
    assert [answer.status_code for answer in answers] == [408] * len(ROUTES)
    assert all("timed out" in answer.text.lower() for answer in answers)
    assert len(server.asked) == 2 * len(ROUTES)


def test_repeated_retry_is_answered(proxy, server):
    server.fails, server.times = 500, 1
    answer = ask(proxy, ("chat", "recovers", 0), SIZE)
    assert (answer.status_code, [status for _, status in server.asked]) == (200, [400, 500, 200])
    assert answer.json()["choices"][0]["message"]["content"] == "Answer."


@pytest.mark.parametrize(("form", "named"), [("falls-back", "fallbacks"), ("overflows", "context_window_fallbacks")])
def test_fallback_follows_failed_retry_and_shows(form, named, proxy, server):
    """The answer is the one that LiteLLM gives for a first attempt that fails, whichever fallback the caller has named."""
    server.fails, server.spared, seen = 429, "other-model", []
    for size in (SHORT, SIZE):
        group = f"{group_of('chat', form, 0)}-{'long' if size is SIZE else 'short'}"
        listed = {"fallbacks" if size is SHORT else named: [{group: ["other-group"]}]}
        server.asked = []
        answer = ask(proxy, ("chat", form, 0), size, max_tokens=50, num_retries=0, **listed)
        assert answer.status_code == 200, answer.text
        seen.append((answer.json()["model"], {n: v for n, v in answer.headers.items() if "fallback" in n or "group" in n}))
    assert server.asked == [(group, 400), (group, 429), ("other-model", 200)]
    assert seen[0] == seen[1]
    assert seen[1][1] == {"x-litellm-model-group": "other-group", "x-litellm-attempted-fallbacks": "1"}


@pytest.mark.parametrize("size", [SHORT, SIZE], ids=["first attempt", "retry"])
def test_failed_attempt_cools_only_its_deployment(size, proxy, server):
    server.fails, server.times, server.retry_after = 429, 1, "60"
    asked = (ask(proxy, ("chat", "pair", 0), size, num_retries=0) for _ in range(3))
    first = next(answer for answer in asked if answer.status_code != 400)  # each deployment has to show its limit
    assert first.status_code == 429
    failed = server.asked[-1][0]
    server.asked = []
    for _ in range(6):
        assert ask(proxy, ("chat", "pair", 0), {**SHORT, "turns": 1 if size is SHORT else 2}).status_code == 200
    assert failed not in {model for model, _ in server.asked}


@pytest.mark.parametrize(("route", "form"), ANSWERED)
def test_answered_retry_costs_what_first_answer_costs(route, form, proxy, server):
    direct, retried = (ask(proxy, (route, form, 0), size) for size in (SHORT, SIZE))
    assert [status for _, status in server.asked] == [200, 400, 200]
    costs = [{name: value for name, value in answer.headers.items() if "-cost" in name} for answer in (direct, retried)]
    assert costs[0] == costs[1]
