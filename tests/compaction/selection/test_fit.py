"""A fit is within its goal, and as full as what can be kept whole allows."""

import pytest

import ctx_hooks


@pytest.mark.parametrize("turns", [99, 199])
@pytest.mark.parametrize("repeated", [5, 20, 60])
@pytest.mark.parametrize("budget_tokens", [2_000, 4_000])
def test_a_few_tokens_too_many_do_not_cost_the_whole_history(turns, repeated, budget_tokens):
    """Exchanges that are large beside the goal: whatever is taken away is more than what is too much."""
    said = [{"role": "assistant" if n % 2 else "user", "content": f"Remark number {n}. " * repeated} for n in range(turns)]
    result = ctx_hooks.compress(said, format="openai-chat", budget_tokens=budget_tokens)
    largest = 6 * repeated + 10
    assert result.fits
    assert result.tokens_after > budget_tokens / 2 - 2 * largest
