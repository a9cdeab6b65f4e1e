"""Whatever script a conversation is written in: one refusal teaches what the provider counts of it."""

import base64
import random
import re
import time
from functools import cache
from itertools import count

import pytest

from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.flow.decision import NotRetried
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.litellm_compat.logged import Answer
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.counter import encoding
from ctx_hooks.tokens.usage import billed_of

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
    "latin": [
        "the", "server", "reads", "every", "file", "before", "it", "answers", "a", "request", "and", "then", "writes",
        "what", "it", "found",
    ],
    "cyrillic": [
        "сервер", "читает", "каждый", "файл", "прежде", "чем", "отвечает", "на", "запрос", "и", "затем", "пишет", "что",
        "нашёл",
    ],
    "emoji": ["🚀", "🎉", "🐍", "🔥", "🤖", "🧪"],
}  # fmt: skip
LATIN = [0.0] * 10
_request_ids = count()


def tokens_of(text: str) -> int:
    return len(encoding("o200k_base").encode_ordinary(text))


def text_in(script: str, tokens: int, draw: random.Random) -> str:
    if script == "base64":
        return base64.b64encode(draw.randbytes(tokens)).decode()
    lines = [" ".join(draw.choices(WORDS[script], k=40)) for _ in range(10)]
    return "\n".join(lines * (1 + tokens // tokens_of("\n".join(lines))))


def counted_by_provider(messages: list[dict[str, object]]) -> int:
    texts = (str(message.get("content") or "") + str(message.get("tool_calls") or "") for message in messages)
    return int(sum(map(count_of, texts)))


@cache
def count_of(text: str) -> float:
    tokens = 4.0
    for script, run in RUNS.items():
        tokens += FACTORS[script] * tokens_of(" ".join(run.findall(text)))
        text = run.sub(" ", text)
    return tokens + tokens_of(text)


def turn(n: int, script: str, share: float, draw: random.Random) -> list[dict[str, object]]:
    """Return a question, a call, and its result with that share of a script."""
    others = int(RESULT_TOKENS * share)
    result = text_in("latin", RESULT_TOKENS - others, draw) + "\n" + (text_in(script, others, draw) if others else "")
    call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{n}.txt"}}'}}
    return [
        {"role": "user", "content": f"What is in file {n}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": result},
    ]


class Provider:
    """A deployment that counts each script by its own factor, and what the plugin learns of it."""

    def __init__(self, *, names_figures: bool, stated_tokens: int) -> None:
        self.runner = RequestFlow()
        self.sent: list[dict[str, object]] = []
        self._names_figures, self._stated_tokens = names_figures, stated_tokens

    async def ask(self, messages: list[dict[str, object]]) -> int:
        """Send a request as LiteLLM would, and return how often it was refused."""
        request, name = Request("openai-chat", {"model": "m", "messages": messages}), f"r{next(_request_ids)}"
        for attempt in range(4):
            window = Window(self._stated_tokens, "model_info")
            to = Target("some/model", "deployment", window, Policy(), name, "ann", attempt=attempt)
            decision = await self.runner.deciding.decide(request, to)
            assert not isinstance(decision, NotRetried)
            self.sent = decision.changes.get("messages", messages)
            tokens = counted_by_provider(self.sent)
            if tokens <= WINDOW:
                await self.runner.answered(name, Answer(billed_of({"prompt_tokens": tokens, "completion_tokens": 50})))
                return attempt
            figures = (WINDOW, tokens) if self._names_figures else ()
            await self.runner.failed(name, Overflow("input", "x", *figures))
        raise AssertionError("no retry was small enough")

    async def refusals_of(self, script: str, shares: list[float]) -> list[int]:
        """Return how often each request of a conversation was refused, whose results have these shares of a script."""
        messages, refused, draw = [], [], random.Random(1)
        for n, share in enumerate(shares):
            messages += turn(n, script, share, draw)
            refused.append(await self.ask(messages))
            messages.append({"role": "assistant", "content": "It says what the server does."})
        return refused

    async def stats(self) -> DeploymentStats:
        return await self.runner.learned.of("deployment")


def up_to(share: float) -> list[float]:
    draw = random.Random(3)
    return [0.0] * 3 + [share] * 10 + [draw.uniform(0, share) for _ in range(10)]


@pytest.mark.parametrize(("share", "stated_tokens"), [(0.2, WINDOW), (0.9, 200_000)], ids=["window known", "window unknown"])
@pytest.mark.parametrize("script", FACTORS)
class TestAfterTheFirstRefusals:
    async def test_named_figure_ends_refusals_of_mix(self, script, share, stated_tokens):
        provider = Provider(names_figures=True, stated_tokens=stated_tokens)
        assert sum(await provider.refusals_of("latin", LATIN)) <= (stated_tokens > WINDOW)
        assert sum(await provider.refusals_of(script, up_to(share))) <= 1

    async def test_two_refusals_without_figure_are_enough(self, script, share, stated_tokens):
        provider = Provider(names_figures=False, stated_tokens=stated_tokens)
        await provider.refusals_of("latin", LATIN)
        assert sum(await provider.refusals_of(script, up_to(share))) <= 2


@pytest.mark.parametrize("script", FACTORS)
async def test_latin_sessions_keep_ratio_and_prompt(script):
    provider = Provider(names_figures=True, stated_tokens=WINDOW)
    await provider.refusals_of("latin", LATIN)
    before = (await provider.stats()).seen_by("ann", time.time()).factor("some/model")
    sent = provider.sent
    assert sum(await provider.refusals_of(script, [0.9] * 10)) <= 1
    stats = await provider.stats()
    assert stats.seen_by("ann", time.time()).factor("some/model") == before
    assert stats.seen_by("ann", time.time()).other_weight("some/model") >= FACTORS[script] * 0.9
    await provider.refusals_of("latin", LATIN)
    assert provider.sent == sent
