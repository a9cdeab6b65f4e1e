"""A window that nobody states: few refusals show it, and then it is used.

Sessions are sizes here: a request above its budget is cut to a share of it, and after each change of the budget to another.
"""

from dataclasses import replace

from engine_requests import NOW, to
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.attempts import updates
from ctx_hooks.attempts.attempt import Attempt, limits_of
from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.tokens.budget import budget_tokens_of

UNSTATED = 1_000_000
ANSWERS, RETRIES = 80, 3
ratios = st.floats(0.75, 1.5)
windows = st.integers(12, 17).flatmap(lambda power: st.integers(2**power, 2 ** (power + 1))).map(lambda n: min(n, 200_000))


class Session:
    """A session that grows by a share of the window, in a deployment whose stated window is another."""

    def __init__(self, window, ratio, growth, start, shares, figures, output=500, stated=UNSTATED):
        self.window, self.ratio, self.figures, self.output, self.shares = window, ratio, figures, output, shares
        self.target = to(stated)
        self.grows = int(window / ratio * growth)
        self.whole = int(window / ratio * start)
        self.stats, self.now, self.refused, self.answered = DeploymentStats(), NOW, [], []
        self.sent = self.budget = 0
        self.rescued = None

    def overflow(self, tokens, output):
        named = {
            "nothing": Overflow("input", "x"),
            "limit": Overflow("input", "x", self.window),
            "both": Overflow("input", "x", self.window, tokens),
            "at least": Overflow(
                "input_plus_output", "x", self.window, self.window - self.output + 1, self.output, at_least=True
            ),
        }
        return named[self.figures]

    def size(self, budget, refused):
        """Return the local tokens of the request as sent within a budget."""
        share = self.shares[int(budget) % len(self.shares)]
        if self.whole <= budget:
            sent = self.whole
        elif budget == self.budget and self.sent + self.grows <= budget:
            sent = self.sent + self.grows
        else:
            sent = int(budget * share)
        return min(sent, int(refused * 0.95)) if refused else sent

    def answer(self):
        """Send a request until it is answered."""
        previous = None
        for number in range(1 + RETRIES):
            self.now += 1
            target = replace(self.target, attempt=number)
            limits = limits_of(target, self.stats, self.now, previous)
            self.check_limit(limits)
            budget = int(budget_tokens_of(limits.window, target.policy) / limits.factor)
            sent = self.size(budget, previous and previous.sent_tokens)
            output = limits.allowed_output_tokens(self.output, int(sent * limits.factor))
            counted = {"received_tokens": self.whole, "sent_tokens": sent}
            counted["rewrites"] = sent not in (self.whole, self.sent + self.grows)
            tried = Attempt(
                target, limits, "openai-chat", output_tokens=output, budget_tokens=budget * limits.factor, **counted
            )
            tokens = int(sent * self.ratio)
            if tokens + (output if self.figures == "at least" else 0) <= self.window:
                self.answered.append(tokens)
                self.sent, self.budget, self.whole = sent, budget, self.whole + self.grows
                self.rescued = len(self.refused) if self.refused and self.rescued is None else self.rescued
                return self.learn(updates.of_answer(self.stats, tried, tokens, self.now))
            previous = replace(tried, overflow=self.overflow(tokens, output), failed=True)
            self.refused.append(sent)
            self.learn(updates.of_refusal(self.stats, previous, previous.overflow, self.now))
        raise AssertionError("refused to the end")

    def learn(self, shown):
        self.stats = self.stats.merged(shown, self.now)

    def check_limit(self, limits):
        if self.refused and self.figures == "nothing":
            most = max(1_000, *self.answered, min(self.refused) * limits.factor + 1)
            assert limits.window.tokens <= most, "above a refused size, and nothing so large was answered"

    def run(self):
        for _ in range(ANSWERS):
            self.answer()
        return len(self.refused) - (self.rescued or 0)


sessions = {
    "ratio": ratios,
    "growth": st.floats(0.02, 0.15),
    "start": st.floats(0.1, 5),
    "shares": st.lists(st.floats(0.6, 0.9), min_size=1, max_size=5),
}


@given(window=windows, **sessions)
def test_without_figures_two_more_refusals_show_the_window(window, **session):
    found = Session(window, figures="nothing", **session)
    assert found.run() <= 2
    usual = budget_tokens_of(replace(found.target.window, tokens=window), found.target.policy)
    assert max(found.answered[-40:]) + found.grows * found.ratio >= 0.8 * usual, "one more message would exceed it"


@given(window=st.integers(8_192, 200_000), figures=st.sampled_from(["both", "at least"]), **sessions)
def test_a_limit_that_was_named_is_refused_once(window, figures, **session):
    """A ratio that nobody knows yet can cost another refusal in the same request."""
    assert Session(window, figures=figures, **session).run() == 0
