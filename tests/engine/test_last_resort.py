"""What would take too long to compress loses its oldest turns, by estimate."""

from engine_requests import STORED, sent, session, to, tokens_of
from strategies import every_format

from ctx_hooks import engine
from ctx_hooks.compaction import last_resort
from ctx_hooks.decision import Compressed
from ctx_hooks.learning.known import Known
from ctx_hooks.testing import violations
from ctx_hooks.tokens.window import Window


class TestTheLastResort:
    """Without a deadline: sizes are estimated, nothing is counted, and what is sent teaches nothing."""

    @every_format
    def test_the_oldest_turns_are_dropped(self, fmt):
        request = session(fmt, turns=40)
        target = to(20_000)
        decision, attempt = engine.decide_by_last_resort(request, target, Known(target.window))[:2]
        assert isinstance(decision, Compressed)
        assert [step.name for step in decision.steps] == [last_resort.NAME]
        assert not violations(fmt, sent(request, decision).fields)
        assert attempt.guessed_tokens >= attempt.sent_tokens
        assert tokens_of(sent(request, decision)) < 20_000

    def test_what_answers_a_call_that_the_provider_keeps_stays(self):
        decision, _ = engine.decide_by_last_resort(STORED, to(20_000), Known(Window(20_000, "model_info")))[:2]
        assert [step.name for step in decision.steps] == [last_resort.NAME]
        assert decision.changes["input"][-1] == STORED.items[-1]
