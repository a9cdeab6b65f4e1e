"""A retry that fails for another reason ends as a first attempt that fails so, and an answered retry as a first answer."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from answering_server import as_sent, format_at, pieces_of
from configurations import deployment
from fastapi.responses import JSONResponse
from routes import CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES, SIZE

from ctx_hooks.testing.behaviour import WORDINGS, error_body

ROUTES = {"chat": CHAT, "messages": MESSAGES, "messages-to-openai": MESSAGES_TO_OPENAI, "responses": RESPONSES}
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
ANSWERED = [(route, ("whole", "streamed")[n % 2], "none") for n, route in enumerate(ROUTES)]
SLOW = [(route, "whole", "slow") for route in ROUTES]
CHATS = [("chat", "whole", what) for what in ("recovers", "falls-back", "overflows", "pair")]
KEPT_HEADERS = ("retry-after", "content-type", "x-litellm-attempted-fallbacks", "x-litellm-attempted-retries")
PRICES = {"input_cost_per_token": 0.01, "output_cost_per_token": 0.01}


def named(case):
    return "-".join(map(str, case))


def group_of(case, size):
    return f"{named(case)}-{'long' if size is SIZE else 'short'}"


def elsewhere_groups(url):
    """Two groups for each case: one for a request that the server refuses first, one for the same case without that."""
    for case in (*CASES, *ANSWERED, *SLOW, *CHATS):
        for name in (group_of(case, SHORT), group_of(case, SIZE)):
            is_pair = case[2] == "pair"
            policy = {"rescue_attempts": 1 if is_pair else 3, "fallbacks": "last"}
            for model in (f"{name}-a", f"{name}-b") if is_pair else (name,):
                made = deployment(
                    url, name, f"{'anthropic' if case[0] == 'messages' else 'openai'}/{model}", ctx_hooks=policy
                )
                made["litellm_params"] |= PRICES | ({"timeout": TIMEOUT_SECONDS, "num_retries": 0} if case in SLOW else {})
                yield made
    yield deployment(url, "other-group", "openai/other-model")


class Server:
    """Refuses what is too long; `fails` says what it does with all else, but for the `spared` model."""

    fails, seconds, times, spared, retry_after = 0, 0.0, 10**9, "", "0"

    def __init__(self):
        self.asked = []

    def statuses(self):
        """Return what was answered since the last time."""
        found, self.asked = [status for _, status in self.asked], []
        return found

    async def answer(self, request):
        model, size, fmt = (await request.json())["model"], len(await request.body()), format_at(request.url.path)
        too_long = size > MOST_BYTES and model != self.spared
        fails = bool(self.fails and self.times and model != self.spared)
        self.asked.append((model, 400 if too_long else self.fails if fails else 200))
        if too_long:
            wording = WORDINGS["anthropic" if fmt == "anthropic" else "openai"]
            _, body = error_body(wording, fmt, limit=MOST_BYTES // 4, input=size // 4)
            return JSONResponse(body, wording.status)
        await asyncio.sleep(self.seconds)
        if fails:
            self.times -= 1
            error = {"type": "overloaded_error", "message": "Not now.", "code": None}
            return JSONResponse({"type": "error", "error": error}, self.fails, headers={"retry-after": self.retry_after})
        return as_sent(await pieces_of(request, "Answer."))


@pytest.fixture
def server(elsewhere):
    made = Server()
    elsewhere.answer = made.answer
    return made


def ask(proxy, case, size, **fields):
    """Ask the case's group for that size with a session of that size, or of another."""
    session = fields.pop("session", size)
    return ROUTES[case[0]].ask(proxy, group=group_of(case, size), stream=case[1] == "streamed", size=session, **fields)


def shown(answer):
    """Return what a client sees of an error, without LiteLLM's remarks on the group and its fallbacks."""
    told = answer.json()["error"]
    told["message"], _, _ = told["message"].partition("\n\nLiteLLM: model group")
    return answer.status_code, told, {name: answer.headers.get(name) for name in KEPT_HEADERS}


@pytest.mark.parametrize("case", CASES, ids=named)
def test_failed_retry_ends_as_first_attempt_would(case, proxy, server):
    server.fails = case[2]
    direct = ask(proxy, case, SHORT)
    asked = server.statuses()
    retried = ask(proxy, case, SIZE)
    assert server.statuses() == [400, *asked], "repeated as often as a first attempt"
    assert shown(retried) == shown(direct)


def test_retry_that_times_out_ends_as_timeout(proxy, server):
    server.seconds = 10 * TIMEOUT_SECONDS
    with ThreadPoolExecutor() as together:
        answers = list(together.map(lambda case: ask(proxy, case, SIZE), SLOW))
    assert [answer.status_code for answer in answers] == [408] * len(ROUTES)
    assert all("timed out" in answer.text.lower() for answer in answers)
    assert len(server.asked) == 2 * len(ROUTES)


def test_repeated_retry_is_answered(proxy, server):
    server.fails, server.times = 500, 1
    answer = ask(proxy, CHATS[0], SIZE)
    assert (answer.status_code, server.statuses()) == (200, [400, 500, 200])
    assert answer.json()["choices"][0]["message"]["content"] == "Answer."


@pytest.mark.parametrize(("case", "kind"), [(CHATS[1], "fallbacks"), (CHATS[2], "context_window_fallbacks")], ids=str)
def test_fallback_follows_failed_retry_and_shows(case, kind, proxy, server):
    """The answer is the one that LiteLLM gives for a first attempt that fails, whichever fallback the caller has named."""
    server.fails, server.spared, seen = 429, "other-model", []
    for size in (SHORT, SIZE):
        group, server.asked = group_of(case, size), []
        listed = {"fallbacks" if size is SHORT else kind: [{group: ["other-group"]}]}
        answer = ask(proxy, case, size, max_tokens=50, num_retries=0, **listed)
        assert answer.status_code == 200, answer.text
        seen.append((answer.json()["model"], {n: v for n, v in answer.headers.items() if "fallback" in n or "group" in n}))
    assert server.asked == [(group, 400), (group, 429), ("other-model", 200)]
    assert seen[0] == seen[1]
    assert seen[1][1] == {"x-litellm-model-group": "other-group", "x-litellm-attempted-fallbacks": "1"}


@pytest.mark.parametrize("size", [SHORT, SIZE], ids=["first attempt", "retry"])
def test_failed_attempt_cools_only_its_deployment(size, proxy, server):
    case, server.fails, server.times, server.retry_after = CHATS[3], 429, 1, "60"
    asked = (ask(proxy, case, size, num_retries=0) for _ in range(3))
    first = next(answer for answer in asked if answer.status_code != 400)  # each deployment has to show its limit
    assert first.status_code == 429
    failed, server.asked = server.asked[-1][0], []
    for _ in range(6):
        assert ask(proxy, case, size, session=SHORT).status_code == 200
    assert failed not in {model for model, _ in server.asked}


@pytest.mark.parametrize("case", ANSWERED, ids=named)
def test_answered_retry_costs_what_first_answer_costs(case, proxy, server):
    direct, retried = (ask(proxy, case, size) for size in (SHORT, SIZE))
    assert server.statuses() == [200, 400, 200]
    costs = [{name: value for name, value in answer.headers.items() if "-cost" in name} for answer in (direct, retried)]
    assert costs[0] == costs[1]
