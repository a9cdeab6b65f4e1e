"""What an operator says of the archive: bounds and folders are for the configuration, and nothing of it for a caller."""

import pytest
from pydantic import ValidationError

from ctx_hooks.policy.addon_settings import DEFAULT_MAX_BYTES, DEFAULT_RETENTION_DAYS, ArchiveSettings
from ctx_hooks.policy.resolve import Caller, Policies, as_text
from ctx_hooks.policy.settings import Policy, Settings


def resolve(settings, **caller):
    return Policies(Settings.model_validate(settings)).resolve(Caller(**caller))


@pytest.fixture(autouse=True)
def _without_environment(monkeypatch):
    for variable in ("TOOL_OUTPUT_DIR", "TOOL_OUTPUT_RETENTION_DAYS"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.parametrize("backend", ["memory", "redis"])
def test_the_bound_is_the_backends_unless_it_is_set(backend):
    assert ArchiveSettings(backend=backend).size_limit_bytes == DEFAULT_MAX_BYTES[backend]
    assert ArchiveSettings(backend=backend, max_bytes=9_000_000).size_limit_bytes == 9_000_000


def test_disk_without_a_folder_is_a_mistake_unless_the_environment_names_one(monkeypatch):
    with pytest.raises(ValidationError, match="TOOL_OUTPUT_DIR"):
        ArchiveSettings(backend="disk")
    monkeypatch.setenv("TOOL_OUTPUT_DIR", "/var/lib/cuts")
    assert ArchiveSettings(backend="disk").path == "/var/lib/cuts"
    assert ArchiveSettings(backend="disk", path="/elsewhere").path == "/elsewhere"


def test_the_environment_says_the_retention_where_a_policy_does_not(monkeypatch):
    assert ArchiveSettings().retention_days == DEFAULT_RETENTION_DAYS
    monkeypatch.setenv("TOOL_OUTPUT_RETENTION_DAYS", "2.5")
    assert ArchiveSettings().retention_seconds == 2.5 * 24 * 3600
    assert ArchiveSettings(retention_days=30).retention_days == 30


@pytest.mark.parametrize("said", ["soon", "-1", "0", "1e9", "nan", "7 days"])
def test_a_retention_of_the_environment_that_is_none_is_told_and_the_default_holds(monkeypatch, caplog, said):
    monkeypatch.setenv("TOOL_OUTPUT_RETENTION_DAYS", said)
    assert ArchiveSettings().retention_days == DEFAULT_RETENTION_DAYS
    assert said in caplog.text


@pytest.mark.parametrize(
    "wrong",
    [{"backend": "tape"}, {"scope": "world"}, {"retention_days": 0}, {"max_bytes": 1}, {"compress": "none"}, {"x": 1}],
)
def test_what_is_no_setting_is_a_mistake(wrong):
    with pytest.raises(ValidationError):
        ArchiveSettings(**wrong)


@pytest.mark.parametrize("asked", [{"path": "/etc"}, {"scope": "organization"}, {"backend": "redis"}, {}, None])
def test_no_caller_can_set_the_archive_whatever_a_scope_allows(asked):
    with pytest.raises(ValidationError, match="no caller may set"):
        Policy(request_may_set=("retrieval", "archive"))
    kept = {"scope": "key", "backend": "memory"}
    found = resolve(
        {"defaults": {"archive": kept, "request_may_set": ["retrieval"]}, "models": {"*": {"request_may_set": ["archive"]}}},
        group="gpt",
        request=as_text({"archive": asked, "retrieval": True}),
    )
    assert found.policy.archive == ArchiveSettings(**kept)
    assert found.policy.retrieval is True
    assert "request: archive may not be set" in found.ignored


@pytest.mark.parametrize("scope", ["organization", "project", "team", "key"])
@pytest.mark.parametrize("field", [{"path": "/etc"}, {"max_bytes": 10**12}], ids=["path", "max_bytes"])
def test_metadata_says_neither_where_files_are_nor_how_much_is_held(scope, field):
    found = resolve({}, **{scope: as_text({"archive": {"backend": "memory", **field}})})
    assert found.policy.archive == ArchiveSettings()
    (name,) = field
    assert any(f"{scope}.archive.{name}" in line for line in found.ignored)
    assert resolve({}, **{scope: as_text({"archive": {"scope": "team"}})}).policy.archive.scope == "team"


def test_metadata_may_name_a_policy_of_the_configuration_that_does():
    kept = {"backend": "disk", "path": "/var/lib/cuts"}
    found = resolve({"policies": {"kept": {"archive": kept}}}, key=as_text({"policy": "kept"}))
    assert found.policy.archive.path == "/var/lib/cuts"


def test_what_is_to_be_retrieved_is_kept_in_memory_at_least():
    disk = ArchiveSettings(backend="disk", path="/kept")
    assert Policy(retrieval=True).archive_in_use == ArchiveSettings()
    assert Policy(archive=disk, retrieval=True).archive_in_use == Policy(archive=disk).archive_in_use == disk
    assert Policy().archive_in_use is None
    with pytest.raises(ValidationError, match="frozen"):
        disk.backend = "memory"
