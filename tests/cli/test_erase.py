"""`ctx-hooks erase` finds by LiteLLM's ids what requests have left in each store, removes it and nothing else."""

import asyncio
import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
from archived import by_handle, stored
from litellm.caching.redis_cache import RedisCache
from litellm.proxy._types import UserAPIKeyAuth

import ctx_hooks
from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.summaries.stored import StoredSummaries, conversation_key
from ctx_hooks.attempts import learned
from ctx_hooks.attempts.learned import Learned
from ctx_hooks.attempts.observations import ANYONE, Observation
from ctx_hooks.cli import main
from ctx_hooks.compaction.summary.model_written import WrittenSummary
from ctx_hooks.formats import MessageReader
from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.policy.addon_settings import ArchiveSettings, SummarySettings
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.testing import free_port

TALK = [{"role": "user", "content": "Tune the piano."}, {"role": "assistant", "content": "Which one?"}]
TEXTS = ["1,204 lines of a log", "the 琴"]
STORES = [("archive", len(TEXTS)), ("archive", len(TEXTS) + 2), ("summaries", 1), ("statistics", 4)]
"""Each with its entries of an owner: rows of the file; keys of texts, of the index and of its sizes; two of two answers; two
kinds of two deployments."""
NAMED = {"team": "team_id", "user": "user_id", "key": "api_key"}


@pytest.fixture
def world(redis_server, patient_store, tmp_path, monkeypatch, capsys):  # noqa: ARG001 - for what it sets
    """A proxy's configuration with both archives; what a worker leaves there of a caller; and the command."""
    redis_cache = RedisCache(host="127.0.0.1", port=redis_server.port, namespace="ours")
    monkeypatch.setenv("CTX_HOOKS_ARCHIVE_KEY", "a secret of the operator")
    monkeypatch.delenv("TOOL_OUTPUT_DIR", raising=False)
    archives = {name: {"backend": name, "scope": "team", "path": str(tmp_path / "kept")} for name in ("disk", "redis")}
    teams = {name: {"archive": archive} for name, archive in archives.items()}
    config = tmp_path / "config.json"
    settings = {"ctx_hooks": {"teams": teams, "events": {"path": str(tmp_path)}}}
    router = {"redis_host": "127.0.0.1", "redis_port": redis_server.port}
    config.write_text(json.dumps({"callback_settings": settings, "router_settings": router}))
    deployments = [uuid4().hex, uuid4().hex]

    async def leave(call):
        store = SharedStore(lambda: redis_cache)
        kinds = {
            ("limit", call.tenant): (8_000, 0, 1),
            ("output_limit", call.tenant): (300,),
            ("accepted", ANYONE): (7_000,),
        }
        shown = {key: Observation(figures, time.time()) for key, figures in kinds.items()}
        for deployment in deployments:
            await Learned(store).learn(deployment, shown)
        conversation = conversation_key(MessageReader("openai-chat", TALK), call.tenant, SummarySettings(model="small"))
        await StoredSummaries(store).write(conversation, WrittenSummary("ab", 2, "The piano."))
        for archive in archives.values():
            kept = Archive(store)
            tenant = kept.tenant(*call.owner("team"))
            while not (await stored(kept, ArchiveSettings(**archive), tenant, by_handle(tenant, TEXTS)))["stored"]:
                pass

    def command(*arguments):
        code = main(["erase", str(config), *arguments])
        return code, capsys.readouterr()

    def kept():
        """Return every key, field, row and observation that there is."""

        async def in_redis():
            client = redis_cache.init_async_client()
            keys = {key async for key in client.scan_iter()}
            fields = {(k, f) for k in keys if await client.type(k) == b"hash" for f in await client.hkeys(k)}
            statistics = [(k, await client.get(k)) for k in keys if learned.KEY_PREFIX.encode() in k]
            shown = {(k, key) for k, v in statistics for key in learned.observations(v, time.time()).observations}
            return keys | fields | shown

        return asyncio.run(in_redis()) | {(s.name, s.texts) for s in disk.tenants(tmp_path / "kept")}

    return SimpleNamespace(leave=lambda call: asyncio.run(leave(call)), erase=command, kept=kept)


def call_of(kind, name):
    return Call({"metadata": {"user_api_key_auth": UserAPIKeyAuth(**{NAMED[kind]: name})}})


@pytest.mark.parametrize("kind", NAMED)
def test_erase_removes_all_of_an_owner_and_nothing_else(world, kind):
    key = f"sk-{uuid4().hex}"
    name = key if kind == "key" else uuid4().hex
    world.leave(call_of("team", uuid4().hex))
    before = world.kept()
    world.leave(call_of(kind, name))
    code, printed = world.erase(f"--{kind}", name, "--yes", "--json")
    receipt = json.loads(printed.out)
    assert [(line["store"], line["found"]) for line in receipt["stores"]] == STORES
    assert [line["removed"] for line in receipt["stores"]] == [entries for _, entries in STORES]
    assert code == 0
    assert world.kept() == before
    assert key not in printed.out
    code, printed = world.erase(f"--{kind}", name, "--yes", "--json")
    assert (code, {line["found"] for line in json.loads(printed.out)["stores"]}) == (1, {0})


def test_no_store_in_redis_is_left_out(world):
    """A store that is added is added to what `world` leaves, and so has to be erased."""
    world.leave(call_of("team", uuid4().hex))
    keys = [key.decode() for key in world.kept() if isinstance(key, bytes)]
    text = "".join(path.read_text(encoding="utf-8") for path in Path(ctx_hooks.__file__).parent.rglob("*.py"))
    prefixes = re.findall(r'^KEY_PREFIX = "(.*)"$', text, re.MULTILINE)
    assert [prefix for prefix in prefixes if not any(key.startswith(f"ours:{prefix}") for key in keys)] == []
    assert len(prefixes) == len({store for store, _ in STORES})


def test_nothing_goes_before_the_operator_agrees(world, monkeypatch):
    team = uuid4().hex
    world.leave(call_of("team", team))
    before = world.kept()
    code, printed = world.erase("--team", team)
    assert (code, printed.out) == (2, "")
    assert f"team {team}: 1 found, 0 removed, summaries in redis\n" in printed.err
    assert world.kept() == before
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: True)
    assert world.erase("--team", team)[0] == 0
    assert world.kept() < before


def test_nothing_goes_if_redis_cannot_be_reached(world, tmp_path):
    team = uuid4().hex
    world.leave(call_of("team", team))
    before, config = world.kept(), tmp_path / "config.json"
    unheard = json.loads(config.read_text())
    unheard["router_settings"]["redis_port"] = free_port()
    config.write_text(json.dumps(unheard))
    code, printed = world.erase("--team", team, "--yes")
    assert (code, printed.out) == (2, "")
    assert "Redis cannot be used" in printed.err
    assert world.kept() == before


def test_digest_names_a_tenant_exactly(world):
    call = call_of("team", team := uuid4().hex)
    world.leave(call)
    (owner,) = json.loads(world.erase("--team", team, "--yes", "--json")[1].out)["owners"]
    before = world.kept()
    world.leave(call)
    assert world.erase("--tenant", "*", "--yes")[0] == 2
    assert world.erase("--tenant", owner["archive_name"], "--tenant", owner["digest"], "--yes")[0] == 0
    assert world.kept() == before
