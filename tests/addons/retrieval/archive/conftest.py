"""A real Redis, and archives as two workers have them."""

from collections import Counter

import pytest

from ctx_hooks.addons.retrieval.archive import archive
from ctx_hooks.addons.retrieval.archive.archive import Archives
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.listeners import on

PATIENT_SECONDS = 30.0
"""A read may take so long here: a busy machine is no broken store."""


@pytest.fixture
def patient(monkeypatch, patient_store):  # noqa: ARG001 - for what it sets
    monkeypatch.setattr(archive, "GET_SECONDS", PATIENT_SECONDS)


@pytest.fixture(params=["memory", "disk", "redis"])
def backend(request):
    return request.param


@pytest.fixture
def settings(backend, tmp_path):
    return ArchiveSettings(backend=backend, path=str(tmp_path))


@pytest.fixture(params=[b"", b"a secret of the operator"], ids=["plain", "encrypted"])
def secret(request):
    return request.param


@pytest.fixture
def worker(backend, secret, request):
    """Returns a function that makes the archives of one more worker process."""
    request.getfixturevalue("patient")
    cache = request.getfixturevalue("redis_cache") if backend == "redis" else None
    return lambda: Archives(SharedStore(lambda: cache), secret)


@pytest.fixture
def one(worker):
    return worker()


@pytest.fixture
def tenant(one):
    return one.tenant("key", "ann")


@pytest.fixture
def texts_told():
    """How many texts events have told of, by what became of them."""
    found = Counter()
    end = on("archive", lambda event: found.update({event.outcome: event.texts}))
    yield found
    end()
