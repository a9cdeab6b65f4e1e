"""A real Redis, and archives as two workers have them."""

import pytest

from ctx_hooks.addons.retrieval.archive import archive
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store.shared_store import SharedStore

PATIENT_SECONDS = 30.0
"""A read may take so long here: a busy machine is no broken store."""


@pytest.fixture
def patient(monkeypatch, patient_store):  # noqa: ARG001 - for what it sets
    monkeypatch.setattr(archive, "GET_SECONDS", PATIENT_SECONDS)


@pytest.fixture(params=["process", "disk", "redis"])
def backend(request):
    return request.param


@pytest.fixture
def settings(backend, tmp_path):
    path = {"process": None, "disk": str(tmp_path), "redis": None}[backend]
    return ArchiveSettings(backend="redis" if backend == "redis" else "disk", path=path)


@pytest.fixture(params=[b"", b"a secret of the operator"], ids=["plain", "encrypted"])
def secret(request):
    return request.param


@pytest.fixture
def worker(backend, secret, request):
    """Returns a function that makes the archive of one more worker process."""
    request.getfixturevalue("patient")
    cache = request.getfixturevalue("redis_cache") if backend == "redis" else None
    return lambda own_secret=secret: Archive(SharedStore(lambda: cache), own_secret)


@pytest.fixture
def one(worker):
    return worker()


@pytest.fixture
def tenant(one):
    return one.tenant("key", "ann")
