"""`ctx-hooks archive` lists, prints and deletes what is kept on disk and in Redis, and a wrong input is told in a line."""

import asyncio
import json
import re
import secrets
import time

import pytest
import yaml
from archived import TEXTS, by_handle, settled

from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.addons.retrieval.archive.archive import Archives
from ctx_hooks.cli import main
from ctx_hooks.litellm_compat.identity import key_id_of
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store.sealing import tenant_name
from ctx_hooks.store.shared_store import SharedStore


@pytest.fixture(params=["disk", "redis"])
def backend(request):
    return request.param


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "TOOL_OUTPUT_RETENTION_DAYS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("TOOL_OUTPUT_DIR", raising=False)
    monkeypatch.setenv("CTX_HOOKS_ARCHIVE_KEY", "a secret of the operator")


@pytest.fixture
def config(backend, tmp_path, request):
    """The proxy's configuration, with an archive in one of its scopes."""
    archive = {"backend": backend, "path": str(tmp_path / "kept")}
    found = {"callback_settings": {"ctx_hooks": {"teams": {"red": {"archive": archive}}}}}
    if backend == "redis":
        port = request.getfixturevalue("redis_server").port
        found["router_settings"] = {"redis_host": "127.0.0.1", "redis_port": port}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(found))
    return str(path)


@pytest.fixture
def stored(backend, tmp_path, request):
    """Returns a function that has a worker store texts and returns them by their handles."""
    settings = ArchiveSettings(backend=backend, path=str(tmp_path / "kept"))

    def store(kind, identifier, texts=TEXTS):
        async def run():
            cache = request.getfixturevalue("redis_cache") if backend == "redis" else None
            archives = Archives(SharedStore(lambda: cache))
            tenant = archives.tenant(kind, identifier)
            archives.put(settings, tenant, found := by_handle(tenant, texts))
            while not await settled(archives, settings, tenant):
                pass
            return found

        return asyncio.run(run())

    return store


@pytest.fixture
def run(config, capsys):
    """Returns a function that runs a command and returns its code and what it printed."""

    def command(*arguments):
        code = main(["archive", *arguments, "--config", config])
        return code, capsys.readouterr().out

    return command


def name_of(kind, identifier):
    return tenant_name(Archives(SharedStore()).tenant(kind, identifier))


def test_ls_says_how_much_is_kept_of_each_tenant(stored, run):
    team, key = secrets.token_hex(4), "sk-" + secrets.token_hex(8)
    texts = stored("team", team)
    stored("key", key_id_of(key), ["one text"])
    code, listed = run("ls", "--json")
    found = {row["name"]: row for row in json.loads(listed)}
    assert code == 0
    assert found[name_of("team", team)]["texts"] == len(texts) + 1
    assert found[name_of("key", key_id_of(key))]["texts"] == 2
    assert found[name_of("team", team)]["size_bytes"] > 0
    days = (found[name_of("team", team)]["last_expires_at"] - time.time()) / 86_400
    assert 6.9 < days <= 7.0
    stored("team", "red")
    code, listed = run("ls")
    assert code == 0
    assert "team red" in listed, "a team of the configuration is named"
    assert name_of("team", team) in listed
    assert team not in listed, "who it is stands nowhere"


def test_show_prints_a_text_to_its_owner_alone(stored, run):
    team = secrets.token_hex(4)
    texts = stored("team", team)
    for handle, text in texts.items():
        code, shown = run("show", handle, "--team", team)
        assert (code, shown) == (0, text.encode("utf-8", "replace").decode() + "\n")
        assert json.loads(run("show", handle, "--team", team, "--json")[1])["text"] == text
        for other in (["--key", team], ["--organization", team], ["--user", team], []):
            assert run("show", handle, *other) == (2, "")


def test_show_needs_no_owner_for_what_came_without_a_key(stored, run):
    ((handle, text),) = stored("nobody", "", ["the piano " + secrets.token_hex(8)]).items()
    assert run("show", handle) == (0, text + "\n")


def test_a_key_is_named_as_it_is_or_by_its_hash(stored, run):
    key = "sk-" + secrets.token_hex(8)
    ((handle, text),) = stored("key", key_id_of(key), ["a text"]).items()
    assert run("show", handle, "--key", key) == run("show", handle, "--key", key_id_of(key)) == (0, text + "\n")


@pytest.mark.parametrize("backend", ["disk"], indirect=True)
def test_the_environment_names_a_folder_too(stored, tmp_path, monkeypatch):
    handle = next(iter(stored("team", "red")))
    monkeypatch.setenv("TOOL_OUTPUT_DIR", str(tmp_path / "kept"))
    assert main(["archive", "show", handle, "--team", "red"]) == 0


@pytest.mark.parametrize("backend", ["disk"], indirect=True)
def test_a_path_alone_names_the_folder(stored, tmp_path, capsys):
    handle, text = next(iter(stored("team", "red").items()))
    config = {"callback_settings": {"ctx_hooks": {"defaults": {"archive": {"path": str(tmp_path / "kept")}}}}}
    (tmp_path / "short.yaml").write_text(yaml.safe_dump(config))
    assert main(["archive", "show", handle, "--team", "red", "--config", str(tmp_path / "short.yaml")]) == 0
    assert text in capsys.readouterr().out


@pytest.mark.parametrize("backend", ["disk"], indirect=True)
def test_a_file_that_is_none_of_sqlites_is_told(config, capsys, tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / disk.FILE).write_bytes(b"no file of SQLite's" * 1_000)
    for arguments in (["ls"], ["prune"], ["show", "b" * 12]):
        assert main(["archive", *arguments, "--config", config]) == 2
        assert "not a database" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["disk"], indirect=True)
def test_a_folder_that_cannot_be_read_is_named(config, capsys, tmp_path):
    (tmp_path / "kept" / disk.FILE).mkdir(parents=True)  # rights would not keep an administrator out
    for arguments in (["ls"], ["prune"], ["show", "b" * 12]):
        assert main(["archive", *arguments, "--config", config]) == 2
        assert re.search("kept.* cannot be used|A folder cannot be used", capsys.readouterr().err)


@pytest.mark.parametrize("backend", ["disk"], indirect=True)
def test_a_text_that_is_shown_moves_no_terminal_and_is_whole_elsewhere(stored, run, monkeypatch):
    text = "\x1b[2J\x07 " + secrets.token_hex(8)
    ((handle, _),) = stored("team", "red", [text]).items()
    assert run("show", handle, "--team", "red") == (0, text + "\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("show", handle, "--team", "red") == (0, text.replace("\x1b", "\\u001b").replace("\x07", "\\u0007") + "\n")
