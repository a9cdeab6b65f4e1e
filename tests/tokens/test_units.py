"""A type checker refuses provider tokens where local tokens are meant, and the other way round."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ctx_hooks
from ctx_hooks.tokens.units import to_local, to_provider

SETTING = """
from ctx_hooks.learning.attempts import Attempt, Known
from ctx_hooks.learning.calibration import observed
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import plan_of
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens, to_local, to_provider
from ctx_hooks.tokens.budget import Window, target_tokens_of
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.target import Target

local, provider = LocalTokens(1_000), ProviderTokens(1_300)
window, counter = Window(provider, "default"), Counter("o200k_base")
to, known = Target("m", "d", window, Policy(), ""), Known(window, 1.3)
"""
SOURCES = (
    "learning/attempts.py", "learning/calibration.py", "overflow/recognise.py",
    "overflow/retry_plan.py", "tokens/budget.py", "tokens/counter.py", "tokens/units.py",
)  # fmt: skip
"""What is read of the package: all of it takes a minute."""
RIGHT = (
    "to_provider(local, 1.3)",
    "Budget(local, provider, counter)",
    "Window(to_provider(local, 1.3), 'default')",
    "plan_of(1, 3, local, provider)",
    "Attempt(to, known, 'anthropic', local, local, output_tokens=provider)",
    "observed((), local, provider)",
    "Overflow('input', 'x', provider, provider)",
    "target_tokens_of(to_local(window.tokens, 1.3), Policy())",
)
WRONG = (
    "to_provider(provider, 1.3)", "to_local(local, 1.3)", "to_local(1_300, 1.3)",
    "Budget(window.tokens, provider, counter)", "Budget(local, counter.text('text'), counter)", "Window(local, 'default')",
    "plan_of(1, 3, provider)", "plan_of(1, 3, local, local)",
    "Attempt(to, known, 'anthropic', provider, local)",
    "Attempt(to, known, 'anthropic', local, local, output_tokens=local)",
    "observed((), provider, local)", "Overflow('input', 'x', local)", "target_tokens_of(window.tokens, Policy())",
)  # fmt: skip


def test_a_type_checker_holds_the_units_apart(tmp_path):
    api = pytest.importorskip("mypy.api", reason="mypy is in the dev group alone")
    lines = [*SETTING.splitlines(), *RIGHT, *WRONG]
    code = tmp_path / "mixed.py"
    code.write_text("\n".join(lines))
    sources = [str(Path(ctx_hooks.__file__).parent / name) for name in SOURCES]
    report, _, _ = api.run([str(code), *sources, "--follow-imports=skip", "--config-file=", f"--cache-dir={tmp_path}"])
    refused = {lines[int(number) - 1] for number in re.findall(r"mixed\.py:(\d+): error: Arg", report)}
    assert refused == set(WRONG), report


@given(st.integers(0, 10**9), st.sampled_from([0.5, 0.77, 1.0, 1.3, 2.5]))
def test_a_conversion_rounds_down_so_that_what_fits_here_fits_there(tokens, factor):
    assert to_provider(to_local(tokens, factor), factor) <= tokens
