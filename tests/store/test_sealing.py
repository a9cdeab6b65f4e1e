"""A value opens to the text that was sealed, for its tenant, under its handle and secret alone; any other opens to none."""

import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctx_hooks.store import sealing
from ctx_hooks.store.sealing import LARGEST_TEXT_BYTES, opened, sealed, tenant_key, tenant_name

SECRETS = [b"", b"s" * 1_000]
TENANT, OTHER = tenant_key("team", "red", b""), tenant_key("key", "red", b"")
HANDLE = "pz5bbqm3fvxm"
any_text = st.text(st.characters(codec=None), max_size=2_000)


@pytest.mark.parametrize("secret", SECRETS, ids=len)
@given(text=any_text)
@example(text="")
@example(text="\ud800 is half a character, and 琴 is a whole one\0")
def test_what_was_sealed_opens_to_the_letter(secret, text):
    assert opened(sealed(text, TENANT, HANDLE, secret), TENANT, HANDLE, secret) == text


@pytest.mark.parametrize("secret", SECRETS, ids=len)
def test_nothing_opens_for_another_tenant_handle_or_secret(secret):
    value = sealed("a text", TENANT, HANDLE, secret)
    assert opened(value, OTHER, HANDLE, secret) is None
    assert opened(value, TENANT, "a" * 12, secret) is None
    for other in {*SECRETS, b"another"} - {secret}:
        assert opened(value, TENANT, HANDLE, other) is None


@pytest.mark.parametrize("secret", SECRETS, ids=len)
def test_a_value_with_any_bit_changed_or_missing_opens_to_none(secret):
    value = sealed("a text that is long enough to be broken", TENANT, HANDLE, secret)
    for n in range(len(value)):
        changed = bytearray(value)
        changed[n] ^= 1
        assert opened(bytes(changed), TENANT, HANDLE, secret) is None
        assert opened(value[:n], TENANT, HANDLE, secret) is None
    assert opened(value + b"x", TENANT, HANDLE, secret) is None


@given(value=st.binary(max_size=300), secret=st.sampled_from(SECRETS))
@example(value=b"", secret=b"s")
def test_bytes_that_nobody_sealed_open_to_none(value, secret):
    assert opened(value, TENANT, HANDLE, secret) is None


def test_a_value_that_would_open_to_gigabytes_takes_no_more_memory_than_a_text():
    """Without a secret whoever has the store can seal: 100 MB of zeros in some KB."""
    value = sealed("0" * 100_000_000, TENANT, HANDLE, b"")
    assert len(value) < 500_000
    tracemalloc.start()
    try:
        assert opened(value, TENANT, HANDLE, b"") is None
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2.5 * LARGEST_TEXT_BYTES


@pytest.mark.parametrize("secret", SECRETS, ids=len)
def test_the_text_does_not_stand_in_the_value(secret, monkeypatch):
    monkeypatch.setattr(sealing, "ZLIB_LEVEL", 0)
    assert b"piano" not in sealed("the piano is tuned to 442 Hz " * 20, TENANT, HANDLE, secret)


def test_the_keys_of_tenants_differ_by_kind_id_and_secret_and_names_do_not_hold_them():
    tenants = [("team", "red"), ("key", "red"), ("team", "blue"), ("nobody", "")]
    keys = [tenant_key(kind, name, secret) for kind, name in tenants for secret in (b"", b"s", b"s" * 100)]
    assert len(set(keys)) == len(keys)
    assert len({tenant_name(key) for key in keys}) == len(keys)
    assert all(key.hex()[:16] not in tenant_name(key) for key in keys)
    assert tenant_key("team", "red", b"s") == keys[1]
