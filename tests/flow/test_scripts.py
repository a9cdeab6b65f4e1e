"""Whatever script a conversation is written in: one refusal teaches what the provider counts of it."""

import base64
import random
import re
from functools import cache

import pytest
from engine_requests import MODEL, Deployment
from strategies import called, spoken

from ctx_hooks.attempts.request import Request
from ctx_hooks.tokens.counter import encoding

WINDOW = 24_000
RESULT_TOKENS = 3_000
FACTORS = {"cyrillic": 1.5, "emoji": 3.0, "base64": 1.7}
"""The least, the largest, and one without words; what lies between (Japanese 1.9, Arabic 2.3) takes the same way."""
RUNS = {
    "cyrillic": re.compile("[Ѐ-ӿ]+"),
    "emoji": re.compile("[\U0001f300-\U0001faff]+"),
    "base64": re.compile("[A-Za-z0-9+/=]{40,}"),
}
WORDS = {
    "latin": "the server reads every file before it answers a request and then writes what it found",
    "cyrillic": "сервер читает каждый файл прежде чем отвечает на запрос и затем пишет что нашёл",
    "emoji": "🚀 🎉 🐍 🔥 🤖 🧪",
}
LATIN = [0.0] * 10


def tokens_in(text):
    return len(encoding("o200k_base").encode_ordinary(text))


def text_in(script, tokens, draw):
    if script == "base64":
        return base64.b64encode(draw.randbytes(tokens)).decode()
    lines = [" ".join(draw.choices(WORDS[script].split(), k=40)) for _ in range(10)]
    return "\n".join(lines * (1 + tokens // tokens_in("\n".join(lines))))


def counted(request):
    """Return the tokens of the provider, which counts each script by its own factor."""
    return sum(
        count_of(str(message.get("content") or "") + str(message.get("tool_calls") or "")) for message in request.items
    )


@cache
def count_of(text):
    tokens = 4.0
    for script, run in RUNS.items():
        tokens += FACTORS[script] * tokens_in(" ".join(run.findall(text)))
        text = run.sub(" ", text)
    return tokens + tokens_in(text)


def refusals(deployment, script, shares):
    """Return how often a conversation was refused, of which so much is of a script, and its last request as sent."""
    messages, refused, now, draw = [], 0, [], random.Random(1)
    for n, share in enumerate(shares):
        others = int(RESULT_TOKENS * share)
        result = text_in("latin", RESULT_TOKENS - others, draw) + "\n" + (text_in(script, others, draw) if others else "")
        question = spoken("openai-chat", "user", f"What is in file {n}?")
        messages += [question, *called(result, f"c{n}", arguments={"path": f"{n}.txt"})]
        decisions, now = deployment.answer(Request("openai-chat", {"model": MODEL, "messages": [*messages]}))
        refused += len(decisions) - 1
        messages.append(spoken("openai-chat", "assistant", "It says what the server does."))
    return refused, now


def up_to(share):
    draw = random.Random(3)
    return [0.0] * 3 + [share] * 10 + [draw.uniform(0, share) for _ in range(10)]


@pytest.mark.parametrize(("share", "stated_tokens"), [(0.2, WINDOW), (0.9, 200_000)], ids=["window known", "window unknown"])
@pytest.mark.parametrize(("named", "most"), [("both", 1), ("nothing", 2)])
@pytest.mark.parametrize("script", FACTORS)
def test_few_refusals_teach_a_script(script, named, most, share, stated_tokens):
    deployment = Deployment(named, counted, WINDOW, stated_tokens)
    assert refusals(deployment, "latin", LATIN)[0] <= most * (stated_tokens > WINDOW)
    assert refusals(deployment, script, up_to(share))[0] <= most


@pytest.mark.parametrize("script", FACTORS)
def test_latin_sessions_keep_ratio_and_prompt(script):
    def seen():
        return deployment.stats.seen_by("ann", deployment.now)

    deployment = Deployment("both", counted, WINDOW, WINDOW)
    _, sent = refusals(deployment, "latin", LATIN)
    before = seen().factor(MODEL)
    assert refusals(deployment, script, [0.9] * 10)[0] <= 1
    assert seen().factor(MODEL) == before
    assert seen().other_weight(MODEL) >= FACTORS[script] * 0.9
    assert refusals(deployment, "latin", LATIN)[1] == sent
