"""Arguments of calls are shortened in their strings alone; all else stays to the letter."""

import json

from hypothesis import given
from hypothesis import strategies as st
from strategies import hostile_texts

from ctx_hooks.compaction import tool_texts
from ctx_hooks.conversation import placeholders
from ctx_hooks.texts.json_text import LARGEST_CHARS, MOST_CONTAINERS, parsed, strings

values = st.recursive(
    st.one_of(st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), hostile_texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=40), inner, max_size=4)),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(max_size=60), values, max_size=5), indent=st.sampled_from([None, 2]))
def test_shortened_arguments_are_json_with_the_same_keys_and_short_strings(value, indent):
    text = json.dumps(value, indent=indent)
    short = tool_texts.shortened(text, 30, "en", lambda _: None)
    assert len(short) <= len(text)
    if short == text:
        return
    pairs = zip(strings(text), strings(short), strict=True)
    for (between, string, _), (kept_between, kept, _) in pairs:
        assert kept_between == between
        assert kept == string or (placeholders.MARK in kept and len(string) > 30)
    assert list(json.loads(short)) == list(value)


def test_what_is_not_json_or_too_large_to_parse_at_once_stays():
    many = json.dumps({"content": "x" * 5_000, "rows": [[]] * MOST_CONTAINERS})
    large = json.dumps(["x" * LARGEST_CHARS])
    for text in ('{"content": "' + "x" * 5_000, "{" * 5_000, many, large):
        assert parsed(text) is None
        assert tool_texts.shortened(text, 100, "en", lambda _: None) == text


@given(text=hostile_texts)
def test_the_strings_of_json_and_what_stands_between_are_the_text(text):
    encoded = json.dumps([text, {text: 1}])
    found = list(strings(encoded))
    assert "".join(between + string for between, string, _ in found) == encoded
    assert [is_key for *_, is_key in found] == [False, True, False]
    # Of two halves of a character JSON makes the whole.
    assert [json.loads(string) for _, string, _ in found if string] == [json.loads(json.dumps(text))] * 2


def test_digest_is_path_or_arguments():
    for key in ("file_path", "filePath", "path"):
        assert tool_texts.digest(f'{{"mode": 1, "{key}": "src/a.py"}}') == "src/a.py"
    assert tool_texts.digest('{"n": 1,  "m": "é"}') == '{"n":1,"m":"é"}'
    assert tool_texts.digest("no json") == "no json"
