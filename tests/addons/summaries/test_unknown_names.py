"""A name or figure that no source has is found; one that is only written otherwise is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.addons.summaries.unknown_names import unknown_names
from ctx_hooks.texts.identifiers import identifiers

SOURCE = (
    "Opened /project/ann/src/app.py and ran `pytest --max-tokens 128,000` in 1,572,864 ms (0.850 s) on 2024-05-01.\n"
    'parseConfig({"user_id": 7731}) failed; input and output of v1.2.3 are in UTF-8. Costs: 100, 200, 300.'
)


@pytest.mark.parametrize("text", [
    "src/app.py", "`app.py`", "max_tokens is 128k", "max_tokens is 128000", "1572864 ms", "1_572_864 ms",
    "0.85 s, or 0.8500", "parseConfig() for user_id=7731", "input/output", "V1.2.3", "12 of 99 tests, 3 files, 50% done",
    "2024-05-01", "100,200,300", "",
])  # fmt: skip
def test_what_stands_in_the_source_is_known_however_it_is_written(text):
    assert unknown_names(text, [SOURCE]) == []


@pytest.mark.parametrize(("text", "unknown"), [
    ("lib/app.py", ["lib/app.py"]), ("src/main.py", ["src/main.py"]), ("project/app.py", ["project/app.py"]),
    ("in 1,572,865 ms", ["1,572,865"]), ("max_tokens is 129k", ["129k"]), ("0.851 s", ["0.851"]),
    ("parseConfigs()", ["parseConfigs"]), ("input/error", ["input/error"]), ("v1.2.4", ["v1.2.4"]),
    ("port 8080", ["8080"]), ("order_id", ["order_id"]), ("bob@example.org", ["bob@example.org"]),
])  # fmt: skip
def test_what_no_source_has_is_unknown(text, unknown):
    assert unknown_names(text, [SOURCE]) == unknown


def test_a_name_may_stand_in_any_source():
    assert unknown_names("src/app.py and user_id", ["src/app.py", "user_id"]) == []


@given(st.lists(st.text(max_size=80), max_size=5), st.integers(0, 4), st.integers(0, 40), st.integers(0, 80))
def test_a_piece_of_a_source_that_ends_with_words_names_nothing_unknown(sources, n, start, length):
    words = " ".join(sources).split()
    piece = " ".join(words[start % (len(words) + 1) :][:length])
    assert unknown_names(piece, [*sources[:n], " ".join(words), *sources[n:]]) == []


@given(st.lists(st.sampled_from(["alpha", "src/a.py", "line_42", "0x1f", "7731", "userId", "1,500"]), max_size=8))
def test_without_a_source_every_name_is_unknown(words):
    text = " ".join(words)
    assert set(identifiers(text)) <= set(unknown_names(text, []))
