"""The tests' proxies are forks of one process: from within and from outside each is what a started one is.

What compares the two is `-m deploy`: it starts a proxy, and only another LiteLLM or another fork server can break it.
"""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys

import pytest
from configurations import PLUGIN, ROOT, configuration, importable
from proxies import ForkedProcess, Proxy, printed_by
from routes import NAMES, ROUTES

from ctx_hooks.testing import ProxyProcess

FACTS = """
import asyncio, json, os, signal, sys, threading
import litellm
from litellm.integrations.custom_logger import CustomLogger

facts = {
    "arguments": sys.argv[1:],
    "folder": sorted(os.listdir()),
    "environment": dict(os.environ),
    "path": sys.path[1:],  # behind the folder of the program
    "threads": [t.name for t in threading.enumerate()],
    "loop": type(asyncio.get_event_loop()).__module__,
    "signals": [str(signal.getsignal(n)) for n in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGUSR1)],
    "files": sorted(os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{n}")),
    "leads its group": os.getpgid(0) == os.getpid(),
    "imported": sorted(name for name in sys.modules if name.startswith("ctx_hooks")),
    "callbacks": [str(type(c)) for c in litellm.callbacks],
    "settings": litellm.callback_settings,
    "clients": len(litellm.in_memory_llm_clients_cache.cache_dict),
}
print("facts", json.dumps(facts), flush=True)
handler = CustomLogger()
"""
CHANGING = re.compile(
    r"(chatcmpl|resp|msg|call|toolu|litellm|rs)[-_][\w=+/-]{8,}|\b\d{10}(\.\d+)?\b|[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{32}\b|127\.0\.0\.1:\d+"
)
"""Ids, times and ports."""
SECONDS = 300
"""For what takes milliseconds on a quiet machine."""
MEASURED = re.compile(r".*date|content-length|.*(duration|overhead|seconds|timing|-ms).*")


class Started(Proxy):
    """The same in a process of its own."""

    def _started(self, arguments, folder):
        return ProxyProcess._started(self, arguments, folder)  # noqa: SLF001 - the seam between the two


@pytest.fixture(scope="module")
def two(provider, tmp_path_factory):
    environment = {**importable(tmp_path_factory.mktemp("facts"), "proxy_facts", FACTS), "ASKED_FOR": "this"}
    settings = {"callbacks": ["proxy_facts.handler", PLUGIN]}
    config = configuration(
        provider.url, litellm_settings=settings, callback_settings={"ctx_hooks": {"defaults": {"reserve": 1_024}}}
    )
    with Proxy(config, environment) as forked, Started(config, environment) as started:
        yield forked, started


def facts(proxy):
    line = next(line for line in proxy.log().splitlines() if line.startswith("facts "))
    found = json.loads(re.sub(r"ctx_hooks_\w{8}\b", "folder", line[6:]))
    found["arguments"].remove(str(proxy.port))
    for name in ("TIKTOKEN_CACHE_DIR", "TESTS_RUN_ID"):  # LiteLLM sets the one when it first counts, the tests the other
        found["environment"].pop(name, None)
    return found


@pytest.mark.deploy
def test_a_fork_finds_what_a_started_process_finds(two):
    forked, started = map(facts, two)
    assert forked == started
    assert forked["environment"]["ASKED_FOR"] == "this"


def test_no_fork_has_the_chance_of_another():
    one, other = (printed_by("import random, numpy; print(random.random(), numpy.random.random())").split() for _ in "ab")
    assert not set(one) & set(other)


@pytest.mark.deploy
@pytest.mark.parametrize(("route", "name"), zip(ROUTES, NAMES, strict=True), ids=NAMES)
def test_a_fork_answers_each_route_as_a_started_proxy_does(route, name, two, provider):
    stream = NAMES.index(name) % 2 == 1
    fork, start = (asked(proxy, provider, route, f"{name}-{'streamed' if stream else 'whole'}", stream) for proxy in two)
    assert fork == start
    assert [status for status, _ in fork[-1]] == [400, 200]


def asked(proxy, provider, route, group, stream):
    provider.reset()
    answer = route.ask(proxy, group=group, stream=stream)
    headers = {name: CHANGING.sub("", value) for name, value in answer.headers.items() if not MEASURED.fullmatch(name)}
    return (
        answer.status_code,
        headers,
        CHANGING.sub("", answer.text),
        [(r["status"], r["payload"]) for r in provider.requests()],
    )


def test_a_variable_that_litellm_reads_at_import_has_a_process_of_its_own():
    asked = ForkedProcess(
        {"arguments": [], "environment": Proxy({}, {"JITTER": "0.5"}).environment(), "folder": "."}, 0, 1, 2
    )
    assert (asked.pid, asked.read_early) == (0, ["JITTER"])


SERVER = """
import fork_server

fork_server.IMPORTED = fork_server.VOCABULARIES = ()
fork_server.build_routes = lambda: None
fork_server.main()
"""
"""A server without LiteLLM, whose forks run a line of Python."""
KILLED = """
import os, pathlib, signal, sys
import proxies

proxies.SERVER = pathlib.Path(sys.argv[1])
asked = {"code": "import signal; signal.pause()", "environment": proxies.Proxy({}).environment(), "folder": "."}
fork = proxies.ForkedProcess(asked, 0, 1, 2)
server = int(open(f"/proc/{fork.pid}/stat").read().rpartition(")")[2].split()[1])
print(fork.pid, server, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_nothing_outlives_tests_that_are_killed(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TESTS_RUN_ID"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    (tmp_path / "server.py").write_text(SERVER)
    command = [sys.executable, "-c", KILLED, str(tmp_path / "server.py")]
    ended = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    assert ended.returncode == -signal.SIGKILL
    pids = list(map(int, ended.stdout.split()))
    assert len(pids) == 2
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # it is gone
            assert select.select([os.pidfd_open(pid)], [], [], SECONDS)[0], "it has not ended"
