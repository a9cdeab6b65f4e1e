"""A process that imports LiteLLM's proxy once, and forks a proxy for each configuration; `tests/proxies.py` talks to it.

    python fork_server.py SOCKET

A connection with a line of JSON (`arguments` of the command `litellm`, or `code` to run in its place; `environment`,
`folder`) and three open files (standard input, output and errors) asks for a proxy. The answers are its `pid`, and at its
end its `status`. Variables that LiteLLM reads at import have the values of the server. A proxy ends with its connection
and the server with the last connection, so that nothing outlives the tests.
"""

import ctypes
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

IMPORTED = (
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvloop",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
    "litellm.litellm_core_utils.default_encoding",
    "litellm.proxy.proxy_cli",
    "litellm.proxy.proxy_server",
    "litellm.proxy.pass_through_endpoints.llm_passthrough_endpoints",
    "openai.resources",
)
"""What a proxy imports before it reads its configuration, and the last two for its first request."""
USED_AT_ONCE = (
    "litellm.integrations.otel.logger",
    "litellm.integrations.websearch_interception.handler",
    "litellm.proxy._experimental.mcp_server.mcp_server_manager",
    "litellm.proxy.admin_mcp",
    "litellm.proxy.anthropic_endpoints.endpoints",
    "litellm.proxy.hooks.mcp_semantic_filter.hook",
    "litellm.proxy.policy_engine.init_policies",
    "litellm.responses.mcp.chat_completions_handler",
)
"""What each proxy imports while it starts or for its first request, of the versions of LiteLLM that have it."""
VOCABULARIES = ("cl100k_base", "o200k_base")
"""Large tables, which LiteLLM and the plugin load from LiteLLM's own files and nothing changes."""
PROGRAMS = str(Path(sys.executable).parent)
"""The folder of `litellm`: Python puts it before all others on the path."""
PARENT_DEATH_SIGNAL = 1
"""Linux's PR_SET_PDEATHSIG."""


def main() -> None:
    gc.disable()  # an import leaves next to nothing to collect, and looking for it takes a quarter of the time
    own = os.environ.pop("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [PROGRAMS, *(path for path in sys.path[1:] if path not in own)]
    environment = dict(os.environ)
    for name in IMPORTED:
        importlib.import_module(name)
    for name in USED_AT_ONCE:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    for name in VOCABULARIES:
        sys.modules["tiktoken"].get_encoding(name)
    build_routes()
    build_models()
    changed = {name: value for name, value in os.environ.items() if environment.get(name) != value}
    if threading.active_count() > 1 or "ctx_hooks" in sys.modules:
        raise RuntimeError(f"a fork would not be as new: {threading.enumerate()}")
    gc.collect()
    gc.freeze()  # a collection would write to each object's page, and so copy it; the one thing that no started proxy has
    gc.enable()
    asked = Server(Path(sys.argv[1])).serve()
    if asked:
        become_proxy(asked, asked["folder"], asked["environment"] | changed)


def build_routes() -> None:
    """FastAPI reads the signatures of LiteLLM's routes at the first request: a second and a half for each proxy."""
    nowhere = {"type": "http", "method": "GET", "path": "/nowhere", "root_path": "", "headers": []}
    for route in sys.modules["litellm.proxy.proxy_server"].app.router.routes:
        route.matches(nowhere)


def build_models() -> None:
    """What LiteLLM makes for the first deployment and the first request, and then keeps: half a second for each proxy."""
    litellm = sys.modules["litellm"]
    litellm.types.router.Deployment(model_name="none", litellm_params={"model": "openai/none"})
    litellm.get_model_info("gpt-4o")
    sys.modules["litellm.llms"].load_guardrail_translation_mappings()


class Server:
    """Forks what is asked for at a socket; each connection may have one proxy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(64)
        self._proxies: dict[socket.socket, int | None] = {}
        self._waiting = selectors.DefaultSelector()
        self._waiting.register(self._listener, selectors.EVENT_READ, self._accept)

    def serve(self) -> dict[str, Any] | None:
        """Return in a fork what it is asked to be, and in the server nothing, once nobody is connected any more."""
        print("listening", flush=True)  # noqa: T201 - who starts this waits for it
        while True:
            for key, _ in self._waiting.select():
                if asked := key.data(key.fileobj):
                    return asked
            if not self._proxies:
                shutil.rmtree(self._path.parent, ignore_errors=True)
                return None

    def _accept(self, listener: socket.socket) -> None:
        connection = listener.accept()[0]
        self._proxies[connection] = None
        self._waiting.register(connection, selectors.EVENT_READ, self._answer)

    def _answer(self, connection: socket.socket) -> dict[str, Any] | None:
        asked = _asked(connection)
        if not asked:
            self._waiting.unregister(connection)
            connection.close()
            if pid := self._proxies.pop(connection):
                os.killpg(pid, signal.SIGKILL)
        elif pid := os.fork():
            os.setpgid(pid, pid)
            self._proxies[connection] = pid
            ended = os.pidfd_open(pid)
            self._waiting.register(ended, selectors.EVENT_READ, lambda _: self._end(connection, pid, ended))
            _tell(connection, pid=pid)
        else:
            for key in self._waiting.get_map().values():
                os.close(key.fileobj if isinstance(key.fileobj, int) else key.fileobj.detach())
            self._waiting.close()
            return asked
        for descriptor in asked.get("streams", ()):
            os.close(descriptor)
        return None

    def _end(self, connection: socket.socket, pid: int, ended: int) -> None:
        self._waiting.unregister(ended)
        os.close(ended)
        _, status = os.waitpid(pid, 0)
        if self._proxies.get(connection) == pid:
            self._proxies[connection] = None
            _tell(connection, status=os.waitstatus_to_exitcode(status))


def become_proxy(asked: dict[str, Any], folder: str, environment: dict[str, str]) -> None:
    """Be the process that `litellm` with these arguments, environment and folder is, or that runs this code."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    own = str(Path.cwd())  # LiteLLM adds it to the path
    os.chdir(folder)
    for descriptor, received in enumerate(asked["streams"]):
        os.dup2(received, descriptor)
        os.close(received)
    os.environ.clear()
    os.environ.update(environment)
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.path[:] = [folder if path == own else path for path in sys.path]
    behind = sys.path.index(PROGRAMS) + 1
    sys.path[behind:behind] = given
    sys.path_importer_cache.clear()
    if "numpy.random" in sys.modules:  # `random` does so by itself
        sys.modules["numpy.random"].seed()
    if "code" in asked:
        exec(asked["code"], {"__name__": "__main__"})  # noqa: S102 - the code of a test
        sys.stdout.flush()
        os._exit(0)  # nobody needs LiteLLM taken to pieces
    sys.argv = ["litellm", *asked["arguments"]]
    from litellm.proxy.proxy_cli import run_server

    sys.exit(run_server(asked["arguments"]))


def _asked(connection: socket.socket) -> dict[str, Any]:
    line, streams = b"", []
    with suppress(ConnectionResetError):
        while not line.endswith(b"\n"):
            part, received, *_ = socket.recv_fds(connection, 65_536, 3)
            if not part:
                return {}
            line, streams = line + part, streams + received
        return json.loads(line) | {"streams": streams}
    return {}


def _tell(connection: socket.socket, **answer: Any) -> None:
    with suppress(BrokenPipeError):  # gone: its end is read next
        connection.sendall(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()
