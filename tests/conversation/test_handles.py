"""A handle is a function of text and key alone, and has one form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.conversation.handles import HANDLE_CHARS, Retrievable, handle_of, is_handle

any_text = st.text(st.characters(codec=None), max_size=300)
keys = st.binary(min_size=1, max_size=64)


@given(any_text, any_text, keys, keys)
def test_handle_identifies_text_and_key(one, other, key, another_key):
    assert is_handle(handle_of(key, one))
    assert (handle_of(key, one) == handle_of(key, other)) == (one == other)
    assert (handle_of(key, one) == handle_of(another_key, one)) == (key == another_key)


@pytest.mark.parametrize(
    "text", ["", "a" * 11, "a" * 13, "A" * 12, "a" * 11 + "1", "a" * 12 + "\n", None, 7, b"a" * 12, ["a"]]
)
def test_no_other_text_is_a_handle(text):
    assert is_handle("a" * HANDLE_CHARS)
    assert not is_handle(text)


def test_key_is_not_printed():
    assert "secret" not in repr(Retrievable(b"secret", 7, None, print))
