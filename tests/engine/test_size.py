"""A request that fits by its size alone is not counted, unless something asks for its count."""

import pytest
from engine_requests import MODEL, NOW, by_size, session, stats_of, to, tokens_of

from ctx_hooks.decision import Untouched
from ctx_hooks.learning.known import Known, known_of
from ctx_hooks.learning.stats import DeploymentStats
from ctx_hooks.request.request import Request


class TestBySizeAlone:
    small = Request("openai-chat", {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]})

    def test_what_is_small_in_any_vocabulary_is_not_counted(self):
        decision, attempt = by_size(self.small, to())
        assert isinstance(decision, Untouched)
        assert attempt.sent_tokens is None
        assert attempt.most_tokens >= tokens_of(self.small)

    def test_what_could_be_too_long_is_counted(self):
        assert by_size(session(turns=40), to(20_000)) is None

    def test_what_has_to_be_counted_is(self):
        assert by_size(self.small, to(), Known(to().window, counts=True)) is None

    @pytest.mark.parametrize("policy", [{"repair": "always"}, {"max_turns": 3}], ids=str)
    def test_a_policy_that_changes_what_fits_has_every_request_counted(self, policy):
        assert known_of(to(**policy), DeploymentStats(), NOW).counts
        assert not known_of(to(), DeploymentStats(), NOW).counts

    def test_a_retry_and_a_tenant_with_an_odd_bill_are_counted(self):
        assert known_of(to(attempt=1), DeploymentStats(), NOW).counts
        assert known_of(to(), stats_of(("low_bill", "ann", 0, 4_000)), NOW).counts
        assert not known_of(to(), stats_of(("low_bill", "bob", 0, 4_000)), NOW).counts
