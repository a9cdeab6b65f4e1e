"""What an operator says of the archive: bounds and folders are for the configuration, and nothing of it for a caller."""

import pytest
from pydantic import ValidationError

from ctx_hooks.flow.startup import started
from ctx_hooks.policy.addon_settings import DEFAULT_RETENTION_DAYS, ArchiveSettings
from ctx_hooks.policy.loading import settings_of
from ctx_hooks.policy.resolve import Caller, Policies, as_text
from ctx_hooks.policy.settings import Policy, Settings


def resolve(settings, **caller):
    return Policies(Settings.model_validate(settings)).resolve(Caller(**caller))


@pytest.fixture(autouse=True)
def _without_environment(monkeypatch):
    for variable in ("TOOL_OUTPUT_DIR", "TOOL_OUTPUT_RETENTION_DAYS"):
        monkeypatch.delenv(variable, raising=False)


def test_folder_is_the_environments_unless_it_is_set(monkeypatch):
    assert ArchiveSettings().path is None
    monkeypatch.setenv("TOOL_OUTPUT_DIR", "/var/lib/cuts")
    assert ArchiveSettings().path == "/var/lib/cuts"
    assert ArchiveSettings(path="/elsewhere").path == "/elsewhere"
    assert resolve({"defaults": "mycodeagent"}).policy.archive.path == "/var/lib/cuts"
    monkeypatch.setenv("TOOL_OUTPUT_RETENTION_DAYS", "2.5")
    assert ArchiveSettings().retention_seconds == 2.5 * 24 * 3600
    assert ArchiveSettings(retention_days=30).retention_days == 30


@pytest.mark.parametrize("said", ["-1", "1e9", "nan", "forever"])
def test_a_wrong_retention_of_the_environment_is_a_mistake(monkeypatch, said):
    monkeypatch.setenv("TOOL_OUTPUT_RETENTION_DAYS", said)
    assert ArchiveSettings().retention_days == DEFAULT_RETENTION_DAYS
    (line,) = settings_of({})[1]
    assert line.startswith("TOOL_OUTPUT_RETENTION_DAYS")
    assert repr(said) in line


def test_folder_of_the_environment_switches_the_archive_on(monkeypatch):
    monkeypatch.setenv("TOOL_OUTPUT_RETENTION_DAYS", "2")
    assert resolve({}).policy.archive is None
    monkeypatch.setenv("TOOL_OUTPUT_DIR", "/var/lib/cuts")
    found, policies = resolve({}), Policies(Settings())
    assert (found.policy.archive.backend, found.policy.archive.path) == ("disk", "/var/lib/cuts")
    assert found.policy.archive.retention_days == 2
    assert found.origins == {"archive": "environment"}
    assert policies.addon_names() == ("retrieval",)
    assert started(Settings(), (), ()).addons == ("retrieval",)


@pytest.mark.parametrize("off", [False, "off", None])
def test_an_archive_that_a_scope_switches_off_stays_off(monkeypatch, off):
    monkeypatch.setenv("TOOL_OUTPUT_DIR", "/var/lib/cuts")
    settings = {"teams": {"red": {"archive": off, "retrieval": True}, "blue": {"archive": {"backend": "redis"}}}}
    assert resolve(settings, team_names=("red",)).policy.archive is None
    assert resolve(settings, team_names=("red",)).policy.archive_in_use == ArchiveSettings(path=None)
    assert resolve(settings, team_names=("blue",)).policy.archive.backend == "redis"


@pytest.mark.parametrize(("variable", "value"), [
    ("TOOL_OUTPUT_TRUNCATE_DIRECTION", "both"), ("TOOL_OUTPUT_MAX_LINES", "0"), ("TOOL_OUTPUT_MAX_BYTES", "50 parsecs"),
])  # fmt: skip
def test_wrong_variable_is_a_mistake_and_changes_no_mode(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    settings, (line,) = settings_of({})
    assert line.startswith(variable)
    assert "mode" not in line
    found = Policies(settings).resolve(Caller())
    assert (found.policy, found.origins) == (Policy(), {})


@pytest.mark.parametrize(("said", "size_bytes"), [("50KB", 51_200), ("64 kb", 65_536), ("2MiB", 2_097_152), ("300", 300)])
def test_a_size_has_a_unit_or_is_in_bytes(monkeypatch, said, size_bytes):
    limits = {"tool_results": {"max_bytes": said}}
    assert resolve({"defaults": limits}).policy.tool_results.max_bytes == size_bytes
    monkeypatch.setenv("TOOL_OUTPUT_MAX_BYTES", said)
    assert resolve({}).policy.tool_results.max_bytes == size_bytes
    assert ArchiveSettings(max_bytes="16MB").max_bytes == 16 * 1_048_576


@pytest.mark.parametrize("asked", [{"path": "/etc"}, {"scope": "organization"}, {"backend": "redis"}, {}, None])
def test_no_caller_can_set_the_archive_whatever_a_scope_allows(asked):
    with pytest.raises(ValidationError, match="no caller may set"):
        Policy(request_may_set=("retrieval", "archive"))
    kept = {"scope": "key", "backend": "redis"}
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
    found = resolve({}, **{scope: as_text({"archive": {"backend": "disk", **field}})})
    assert found.policy.archive == ArchiveSettings()
    (name,) = field
    assert any(f"{scope}.archive.{name}" in line for line in found.ignored)
    assert resolve({}, **{scope: as_text({"archive": {"scope": "team"}})}).policy.archive.scope == "team"


def test_retrieval_has_an_archive():
    disk = ArchiveSettings(backend="disk", path="/kept")
    assert Policy(retrieval=True).archive_in_use == ArchiveSettings()
    assert Policy(archive=disk, retrieval=True).archive_in_use == Policy(archive=disk).archive_in_use == disk
    assert Policy().archive_in_use is None
