"""`ctx-hooks archive` lists, prints and deletes what is kept on disk and in Redis, and a wrong input is told in a line."""

import asyncio
import json
import re
import secrets

import pytest
from archived import TEXTS, by_handle
from archived import stored as written

from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.cli import main
from ctx_hooks.litellm_compat.call import key_id_of
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store.sealing import tenant_name
from ctx_hooks.store.shared_store import SharedStore

on_disk = pytest.mark.parametrize("backend", ["disk"], indirect=True)


@pytest.fixture(params=["disk", "redis"])
def backend(request):
    return request.param


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch):
    for name in ("REDIS_URL", "REDIS_HOST", "REDIS_PORT", "TOOL_OUTPUT_RETENTION_DAYS", "TOOL_OUTPUT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CTX_HOOKS_ARCHIVE_KEY", "a secret of the operator")


@pytest.fixture
def run(backend, tmp_path, request, capsys):
    """Return a function that runs a command with a proxy's configuration, and returns its code and output."""
    archive = {"backend": backend, "path": str(tmp_path / "kept")}
    config = {"callback_settings": {"ctx_hooks": {"teams": {"red": {"archive": archive}}}}}
    if backend == "redis":
        port = request.getfixturevalue("redis_server").port
        config["router_settings"] = {"redis_host": "127.0.0.1", "redis_port": port}
    (tmp_path / "config.json").write_text(json.dumps(config))

    def command(*arguments):
        code = main(["archive", *arguments, "--config", str(tmp_path / "config.json")])
        return code, capsys.readouterr().out

    return command


@pytest.fixture
def stored(backend, tmp_path, request):
    """Return a function that has a worker store texts and returns them by their handles."""
    settings = ArchiveSettings(backend=backend, path=str(tmp_path / "kept"))

    def store(kind, identifier, texts=TEXTS):
        async def write():
            cache = request.getfixturevalue("redis_cache") if backend == "redis" else None
            archive = Archive(SharedStore(lambda: cache))
            tenant = archive.tenant(kind, identifier)
            found = by_handle(tenant, texts)
            while not (await written(archive, settings, tenant, found))["stored"]:
                pass
            return found

        return asyncio.run(write())

    return store


def test_ls_counts_what_is_kept_of_each_tenant(stored, run):
    team, key = secrets.token_hex(4), "sk-" + secrets.token_hex(8)
    texts = stored("team", team)
    stored("key", key_id_of(key), ["one text"])
    found = {row["name"]: row for row in json.loads(run("ls", "--json")[1])}
    names = [tenant_name(Archive(SharedStore()).tenant(*owner)) for owner in (("team", team), ("key", key_id_of(key)))]
    assert [found[name]["texts"] for name in names] == [len(texts), 1]
    assert found[names[0]]["size_bytes"] > 0
    stored("team", "red")
    code, listed = run("ls")
    assert code == 0
    assert "team red" in listed, "a team of the configuration is named"
    assert names[0] in listed
    assert team not in listed, "who it is stands nowhere"


def test_show_prints_a_text_only_to_its_owner(stored, run):
    team, key = secrets.token_hex(4), "sk-" + secrets.token_hex(8)
    for handle, text in stored("team", team).items():
        assert run("show", handle, "--team", team) == (0, text.encode("utf-8", "replace").decode() + "\n")
        assert json.loads(run("show", handle, "--team", team, "--json")[1])["text"] == text
        for other in (["--key", team], ["--organization", team], ["--user", team], []):
            assert run("show", handle, *other) == (2, "")
    ((handle, text),) = stored("nobody", "", ["the piano " + secrets.token_hex(8)]).items()
    assert run("show", handle) == (0, text + "\n")
    ((handle, text),) = stored("key", key_id_of(key), ["a text"]).items()
    assert run("show", handle, "--key", key) == run("show", handle, "--key", key_id_of(key)) == (0, text + "\n")


@on_disk
def test_unusable_store_is_named(run, tmp_path, capsys):  # noqa: ARG001 - it writes the configuration
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / disk.FILE).write_bytes(b"no file of SQLite's" * 1_000)
    for arguments in (["ls"], ["prune"], ["show", "b" * 12]):
        assert main(["archive", *arguments, "--config", str(tmp_path / "config.json")]) == 2
        assert re.search("kept.* cannot be used", capsys.readouterr().err)


@on_disk
def test_shown_text_moves_no_terminal(stored, run, monkeypatch):
    text = "\x1b[2J\x07 " + secrets.token_hex(8)
    ((handle, _),) = stored("team", "red", [text]).items()
    assert run("show", handle, "--team", "red") == (0, text + "\n")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run("show", handle, "--team", "red") == (0, text.replace("\x1b", "\\u001b").replace("\x07", "\\u0007") + "\n")
