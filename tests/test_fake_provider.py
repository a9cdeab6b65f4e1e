"""The fake provider says what it expects."""

import httpx
import pytest

from ctx_hooks.testing import FakeProvider


def test_running_provider_refuses_unknown_wording():
    with FakeProvider() as provider, pytest.raises(httpx.HTTPStatusError):
        provider.configure(wording="nobody's")
