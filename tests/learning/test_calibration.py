"""The provider tokens per local token: right after a few answers, robust, and steady."""

import random
import statistics

import pytest

from ctx_hooks.learning.calibration import family_factor, observed


def learned(ratios, counted=10_000):
    found = ()
    for ratio in ratios:
        found = observed(found, counted, int(counted * ratio))
    return found


def test_before_anything_is_learned_the_family_speaks():
    assert family_factor("anthropic/claude-sonnet-4-5") == 1.3
    assert family_factor("openai/gpt-4o") == 1.0


@pytest.mark.parametrize("factor", [0.9, 1.17, 1.31])
def test_after_ten_noisy_answers_the_error_is_small(factor):
    errors = []
    for seed in range(300):
        draw = random.Random(seed)
        calibration = learned([factor * draw.gauss(1, 0.03) for _ in range(10)])
        errors.append(abs(calibration[0] / (factor * draw.gauss(1, 0.03)) - 1))
    errors.sort()
    assert statistics.median(errors) <= 0.03
    assert errors[int(0.95 * len(errors))] <= 0.08


def test_a_single_outlier_changes_nothing():
    steady = learned([1.1] * 9)
    assert observed(steady, 10_000, 24_000)[0] == steady[0]


def test_small_noise_does_not_move_the_published_factor():
    calibration = learned([1.1])
    for ratio in (1.11, 1.09, 1.105, 1.095, 1.12, 1.1):
        assert observed(calibration, 10_000, int(10_000 * ratio))[0] == calibration[0]
        calibration = observed(calibration, 10_000, int(10_000 * ratio))


def test_two_workers_that_see_a_conversation_in_turn_mostly_agree():
    """Each learns from its own answers alone; the ratio drifts with the texts of the conversation."""
    agreed = 0
    for seed in range(200):
        draw = random.Random(seed)
        base, drift = draw.uniform(0.8, 1.6), 0.0
        workers = [(), ()]
        for turn in range(1, 51):
            drift += draw.gauss(0, 0.04)
            n = draw.randrange(2)
            workers[n] = observed(workers[n], 10_000, int(10_000 * base * (1 + drift / turn)))
        agreed += workers[0][:1] == workers[1][:1]
    assert agreed >= 150


def test_a_lasting_change_is_followed():
    assert learned([1.0] * 15 + [1.3] * 12)[0] == pytest.approx(1.3, rel=0.02)


@pytest.mark.parametrize(("counted", "billed"), [(10_000, 60_000), (10_000, 100), (10, 11), (10_000, 0)])
def test_what_is_no_tokenizer_is_not_learned(counted, billed):
    assert observed((), counted, billed) == ()


def test_the_ratio_of_other_scripts_is_the_largest_of_the_last_fifteen():
    calibration = ()
    for ratio in (3.0, *[1.5] * 14):
        calibration = observed(calibration, 10_000, int(10_000 * ratio), is_bound=True)
    assert calibration[0] == pytest.approx(3.0, rel=0.02)
    assert observed(calibration, 10_000, 15_000, is_bound=True)[0] == pytest.approx(1.5, rel=0.02)
