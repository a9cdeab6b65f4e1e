"""A proxy with a real PostgreSQL: policies and models are made and changed by LiteLLM's API, and the spend is stored."""

import importlib.util
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from configurations import GENERAL, PLUGIN, ROOT, WINDOW, deployment
from documentation import blocks
from routes import CHAT

from ctx_hooks.testing import LOOPBACK, ProxyProcess
from ctx_hooks.testing.processes import free_port

pytestmark = pytest.mark.deploy

SECONDS = 300
"""Most for a start or a stop."""
ENGINE = ROOT / "tests" / "database" / "query_engine.mjs"
PROGRAMS = ENGINE.with_name("node_modules") / ".bin"
STORED = {**GENERAL, "store_model_in_db": True}
SETTINGS = {"ctx_hooks": {"defaults": {"reserve": 500, "rescue_attempts": 2}}}
TIGHT = {"max_input_tokens": 12_000, "ctx_hooks": {"reserve": "45%"}}
"""Holds a session of 8,000 tokens, but not the share that its policy keeps free for the answer as well."""
INPUT, OUTPUT = 0.001, 0.01
CHINESE, ENGLISH = {"ctx_hooks": {"language": "zh"}}, {"ctx_hooks": {"language": "en"}}
ORGANIZATION = """
insert into "LiteLLM_BudgetTable" (budget_id, created_by, updated_by) values ('budget', 'test', 'test');
insert into "LiteLLM_OrganizationTable"
(organization_id, organization_alias, budget_id, models, metadata, created_by, updated_by)
values ('house', 'house', 'budget', '{}', :'metadata', 'test', 'test');
"""
SPENT = """select row_to_json(spent) from "LiteLLM_SpendLogs" spent where team_id = :'team'"""
DAY = """select row_to_json(day) from "LiteLLM_DailyTeamSpend" day where team_id = :'team'"""


class Database:
    """A PostgreSQL server with LiteLLM's tables in a folder; a context manager.

    Skips the test where PostgreSQL, Node.js, Prisma's Python client or the packages of tests/database are absent, unless a
    database is required.
    """

    def __init__(self, folder):
        servers = Path("/usr/lib/postgresql").glob("*/bin")  # Debian's, which are on no path
        found = os.pathsep.join(map(str, [*sorted(servers, reverse=True), os.environ["PATH"]]))
        self._programs = {name: shutil.which(name, path=found) for name in ("initdb", "pg_ctl", "psql", "node")}
        missing = [name for name, program in self._programs.items() if program is None]
        missing += [] if importlib.util.find_spec("prisma") else ["Python's prisma"]
        missing += [] if PROGRAMS.exists() else ["`npm ci --prefix tests/database`"]
        if missing:
            (pytest.fail if os.environ.get("CTX_HOOKS_REQUIRE_DATABASE") else pytest.skip)(f"without {', '.join(missing)}")
        self._cluster, self._client = folder / "cluster", folder / "client"
        self._port = free_port()
        self._url = f"postgresql://litellm@127.0.0.1:{self._port}/postgres"
        self._account = {}

    def __enter__(self):
        self._cluster.mkdir()
        if os.geteuid() == 0:  # PostgreSQL does not run as root, but as Debian's user
            owner = pwd.getpwnam("postgres")
            self._cluster.parent.chmod(0o755)
            os.chown(self._cluster, owner.pw_uid, owner.pw_gid)
            self._account = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        self._as_account("initdb", "-U", "litellm", "--auth", "trust", "--no-sync")
        with (self._cluster / "postgresql.conf").open("a") as settings:
            settings.write(f"port = {self._port}\nlisten_addresses = '127.0.0.1'\nfsync = off\n")
            settings.write(f"unix_socket_directories = '{self._cluster}'\n")
        self._as_account("pg_ctl", "-w", "-t", str(SECONDS), "start", "-l", self._cluster / "log")
        self._migrate()
        self._generate()
        return self

    def __exit__(self, *_):
        self._as_account("pg_ctl", "-w", "-t", str(SECONDS), "stop", "-m", "fast")

    def rows(self, query, **values):
        """Return the rows of a query, in which `:'name'` stands for a value, as psql prints them."""
        variables = [part for name, value in values.items() for part in ("-v", f"{name}={value}")]
        command = [self._programs["psql"], "-X", "-q", self._url, "-At", "-v", "ON_ERROR_STOP=1", *variables, "-f", "-"]
        return subprocess.run(command, check=True, capture_output=True, text=True, input=query).stdout.splitlines()

    def environment(self):
        """Return the environment of a proxy that uses it; the engine that makes tables is a native program alone."""
        return {
            "DATABASE_URL": self._url,
            "DISABLE_SCHEMA_UPDATE": "true",
            "LITELLM_SALT_KEY": "sk-ctx-hooks-salt-3c4b5a0f1e2d",
            "PATH": os.pathsep.join([str(PROGRAMS), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(self._client), str(ROOT)]),
            "PRISMA_QUERY_ENGINE_BINARY": str(ENGINE),
            "PRISMA_SCHEMA_ENGINE_BINARY": str(ENGINE),
        }

    def _as_account(self, program, *arguments):
        command = [self._programs[program], "-D", self._cluster, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self._cluster, **self._account)

    def _migrate(self):
        """Run the migrations that LiteLLM's own package ships."""
        migrations = sorted((_folder_of("litellm_proxy_extras") / "migrations").glob("*/migration.sql"))
        self.rows("\n".join(path.read_text() for path in migrations))

    def _generate(self):
        """Generate LiteLLM's database client, as `prisma generate` does, beside the installed package instead of into it."""
        client = 'provider = "prisma-client-py"'
        output = f'provider = "{sys.executable} -m prisma"\n  output = "{self._client / "prisma"}"'
        schema = (_folder_of("litellm") / "proxy" / "schema.prisma").read_text()
        assert client in schema
        self._client.mkdir()
        changed = self._client / "schema.prisma"
        changed.write_text(schema.replace(client, output))
        engines = ("PRISMA_QUERY_ENGINE_BINARY", "PRISMA_QUERY_ENGINE_LIBRARY", "PRISMA_SCHEMA_ENGINE_BINARY")
        offline = {"CHECKPOINT_DISABLE": "1", **dict.fromkeys(engines, str(ENGINE))}
        command = [PROGRAMS / "prisma", "generate", "--schema", changed]
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **offline})


def _folder_of(package):
    """Return the folder of an installed package without importing it."""
    return Path(importlib.util.find_spec(package).origin).parent


@pytest.fixture(scope="module")
def database():
    with tempfile.TemporaryDirectory() as folder, Database(Path(folder)) as running:
        yield running


@pytest.fixture(scope="module")
def stored(provider, database):
    """A proxy whose YAML names the plugin and the database; its models are added while it runs."""
    config = {"litellm_settings": {"callbacks": [PLUGIN]}, "callback_settings": SETTINGS, "general_settings": STORED}
    tight = deployment(provider.url, "tight", "openai/large", **TIGHT)
    tight["litellm_params"] |= {"input_cost_per_token": INPUT, "output_cost_per_token": OUTPUT}  # the API takes them there
    fitted = deployment(provider.url, "fitted", "openai/served", max_input_tokens=WINDOW)
    with ProxyProcess(config, database.environment()) as running:
        for model in (fitted, tight, deployment(provider.url, "unknown", "openai/served")):
            manage(running, "/model/new", **model)
        yield running


def manage(proxy, path, **fields):
    answer = LOOPBACK.post(proxy.url + path, json=fields, headers=proxy.headers, timeout=SECONDS)
    assert answer.status_code == 200, answer.text
    return answer.json()


def team_of(proxy, **fields):
    """Return a new team, and a key of it."""
    team = manage(proxy, "/team/new", **fields)["team_id"]
    return team, manage(proxy, "/key/generate", team_id=team)["key"]


def asked(proxy, key, group="fitted", decision="compressed"):
    """Return the answer to a session of 8,000 tokens."""
    answer = CHAT.ask(proxy, group=group, headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks-decision"] == decision
    return answer


def is_chinese(proxy, provider, key):
    asked(proxy, key)
    return "已移除" in json.dumps(provider.requests()[-1]["payload"], ensure_ascii=False)


def test_changed_team_metadata_apply_to_next_request(stored, provider):
    team, key = team_of(stored, metadata=CHINESE)
    assert is_chinese(stored, provider, key)
    manage(stored, "/team/update", team_id=team, metadata=ENGLISH)
    assert not is_chinese(stored, provider, key)


def test_organizations_lock_binds_its_teams(stored, provider, database):
    """LiteLLM's API makes organizations with an enterprise licence alone: the row is written as that API writes it."""
    database.rows(ORGANIZATION, metadata=json.dumps({"ctx_hooks": {"language": "zh", "locked": ["language"]}}))
    _, key = team_of(stored, organization_id="house", metadata=ENGLISH)
    assert is_chinese(stored, provider, key)
    assert "team: language is locked by organization" in stored.log()


def test_model_of_database_is_rescued(stored, provider):
    asked(stored, team_of(stored)[1], "unknown", "retried")
    assert [request["status"] for request in provider.requests()] == [400, 200]


def test_spend_log_and_team_day_have_savings(stored, database):
    team, key = team_of(stored, metadata=CHINESE)
    answer = asked(stored, key, "tight")
    usage = answer.json()["usage"]
    stored.wait_until(lambda: database.rows(SPENT, team=team) and database.rows(DAY, team=team), "the spend to be stored")
    row, day = (json.loads(database.rows(query, team=team)[0]) for query in (SPENT, DAY))
    figures, savings = row["metadata"]["spend_logs_metadata"]["ctx_hooks"], row["metadata"]["compression_savings"]
    assert row["metadata"]["litellm_call_id"] == answer.headers["x-litellm-call-id"]
    assert (figures["decision"], figures["policy"]) == ("compressed", "defaults, model_info.ctx_hooks, team")
    assert "ctx_hooks:compressed" in row["request_tags"]
    assert (savings["source"], savings["tokens_after"]) == ("ctx_hooks", usage["prompt_tokens"])
    assert savings["tokens_saved"] == figures["tokens_saved"] == day["compression_saved_tokens"] > 0
    assert day["compression_savings_spend"] == pytest.approx(figures["dollars_saved"])
    cost = usage["prompt_tokens"] * INPUT + usage["completion_tokens"] * OUTPUT
    assert row["spend"] == day["spend"] == pytest.approx(cost), "the team pays what the provider bills"
    (query,) = blocks("sql")
    of_the_team = [line.split("|") for line in database.rows(query.text) if line.startswith(team)]
    assert of_the_team == [[team, "1", "0", str(figures["tokens_saved"]), str(figures["dollars_saved"])]], (
        "docs/telemetry.md"
    )
