"""A real PostgreSQL with LiteLLM's tables, and what a proxy needs to use it."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ctx_hooks.testing.processes import free_port

SECONDS = 300
"""Most for a start or a stop."""
ROOT = Path(__file__).resolve().parents[1]
ENGINE = ROOT / "tests" / "database" / "query_engine.mjs"
PROGRAMS = ENGINE.with_name("node_modules") / ".bin"
SERVERS = "/usr/lib/postgresql"
"""Debian's folders of PostgreSQL's programs, one a version, which are on no path."""
ACCOUNT = "postgres"
"""Debian's: PostgreSQL does not run as root."""


class DatabaseProcess:
    """A PostgreSQL server on a free port with LiteLLM's tables; a context manager.

    Skips the test where PostgreSQL, Node.js, Prisma's Python client or the packages of tests/database are absent, unless a
    database is required.
    """

    def __init__(self) -> None:
        found = os.pathsep.join(map(str, [*sorted(Path(SERVERS).glob("*/bin"), reverse=True), os.environ["PATH"]]))
        programs = {name: shutil.which(name, path=found) for name in ("initdb", "pg_ctl", "psql", "node")}
        missing = [name for name, program in programs.items() if program is None]
        missing += [] if importlib.util.find_spec("prisma") else ["Python's prisma"]
        missing += [] if PROGRAMS.exists() else ["`npm ci --prefix tests/database`"]
        if missing:
            (pytest.fail if os.environ.get("CTX_HOOKS_REQUIRE_DATABASE") else pytest.skip)(f"without {', '.join(missing)}")
        self._programs = programs
        self.port = free_port()
        self.url = f"postgresql://litellm@127.0.0.1:{self.port}/postgres"

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="ctx_hooks_database_")
        self._cluster, self._client = Path(self._folder.name, "cluster"), Path(self._folder.name, "client")
        self._cluster.mkdir()
        self._account = {}
        if os.geteuid() == 0:
            Path(self._folder.name).chmod(0o755)
            owner = pwd.getpwnam(ACCOUNT)
            os.chown(self._cluster, owner.pw_uid, owner.pw_gid)
            self._account = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        created = [self._programs["initdb"], "-D", self._cluster, "-U", "litellm", "--auth", "trust", "--no-sync"]
        subprocess.run(created, check=True, capture_output=True, cwd=self._cluster, **self._account)
        with (self._cluster / "postgresql.conf").open("a") as settings:
            settings.write(f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nfsync = off\n")
            settings.write(f"unix_socket_directories = '{self._cluster}'\n")
        self.start()
        try:
            self._migrate()
            self._generate()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop("fast")
        self._folder.cleanup()

    def start(self):
        self._control("start", "-l", self._cluster / "log")

    def stop(self, mode):
        self._control("stop", "-m", mode)

    def rows(self, query: str, **values: str) -> list[str]:
        """Return the rows of a query, in which `:'name'` stands for a value, as psql prints them."""
        variables = [part for name, value in values.items() for part in ("-v", f"{name}={value}")]
        return self._psql("-At", "-v", "ON_ERROR_STOP=1", *variables, "-f", "-", input=query).stdout.splitlines()

    def environment(self) -> dict[str, str]:
        """Return the environment of a proxy that uses this database.

        Its tables are there already, and the engine that compares or makes them is a native program alone.
        """
        return {
            "DATABASE_URL": self.url,
            "DISABLE_SCHEMA_UPDATE": "true",
            "LITELLM_SALT_KEY": "sk-ctx-hooks-salt-3c4b5a0f1e2d",
            "PATH": os.pathsep.join([str(PROGRAMS), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join([str(self._client), str(ROOT)]),
            "PRISMA_QUERY_ENGINE_BINARY": str(ENGINE),
            "PRISMA_SCHEMA_ENGINE_BINARY": str(ENGINE),
        }

    def _control(self, *arguments):
        """Start or stop the server, and return once it has: PostgreSQL's own program waits for it."""
        command = [self._programs["pg_ctl"], "-D", self._cluster, "-w", "-t", str(SECONDS), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self._cluster, **self._account)

    def _migrate(self):
        """Run the migrations that LiteLLM's own package ships."""
        folder = _folder_of("litellm_proxy_extras") / "migrations"
        migrations = "\n".join(path.read_text() for path in sorted(folder.glob("*/migration.sql")))
        self._psql("-v", "ON_ERROR_STOP=1", "-f", "-", input=migrations)

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

    def _psql(self, *arguments: str, **more):
        command = [self._programs["psql"], "-X", "-q", self.url, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, **more)


def _folder_of(package: str) -> Path:
    """Return the folder of an installed package without importing it."""
    return Path(importlib.util.find_spec(package).origin).parent
