"""Local tokens of a model whose vocabulary is not here are near those of today's vocabularies, whatever the language."""

import json
import statistics
from pathlib import Path

import pytest

from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.vocabulary import vocabulary_of

MEASURED = json.loads((Path(__file__).parents[2] / "benchmarks" / "languages.json").read_text(encoding="utf-8"))
COUNTER = Counter(vocabulary_of("some/model-of-tomorrow"))


def shares(language):
    """Return local tokens as a share of what each measured vocabulary counts."""
    counted = COUNTER.text(MEASURED[language]["text"])
    return [counted / tokens for tokens in MEASURED[language]["tokens"].values()]


def test_there_are_twenty_languages():
    assert len(MEASURED) == 20


@pytest.mark.parametrize("language", MEASURED)
def test_a_count_is_within_a_fifth_of_the_median_and_no_bill_looks_cut(language):
    assert 0.785 <= statistics.median(shares(language)) <= 1.215
    assert max(shares(language)) < 1 / 0.6
