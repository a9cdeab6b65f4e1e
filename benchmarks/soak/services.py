"""What the soak runs on: the provider and the relays to Redis, each a process, and the workers of two planes."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workload import FORMATS, WIDE_TOKENS, WINDOW_TOKENS, answer_to, fails_first, provider_answer

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess, Reply, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection

    from typing_extensions import Self

PLANES = ("with", "without")
ROOT = Path(__file__).resolve().parents[2]
PREFIXES = {
    "openai-chat": ("openai", "/v1"),
    "anthropic": ("anthropic", ""),
    "openai-responses": ("openai", "/v1"),
    "gemini": ("gemini", "/v1beta"),
}
KEPT_NONCES = 100_000
CUT = ("Traceback", "ctx_hooks", "Error", "unchanged")
WATCH = '''
import asyncio, json, os, time
from litellm.integrations.custom_logger import CustomLogger

SLEEP_SECONDS, WRITE_SECONDS = 0.01, 5.0
watch = CustomLogger()

async def watched():
    """Write every few seconds how long the loop was held up: the longest, and the 99th of a hundred."""
    written, held = time.monotonic(), []
    while True:
        start = time.perf_counter()
        await asyncio.sleep(SLEEP_SECONDS)
        held.append(time.perf_counter() - start - SLEEP_SECONDS)
        if time.monotonic() - written > WRITE_SECONDS:
            held.sort()
            with open(os.environ["SOAK_LOOP"], "a") as file:
                file.write(json.dumps([time.time(), held[len(held) * 99 // 100], held[-1]]) + "\\n")
            written, held = time.monotonic(), []

task = asyncio.get_running_loop().create_task(watched())
'''


def _served(pipe: Connection) -> None:
    """Be the providers: one a kind of window, which remember no request."""
    first: dict[str, None] = {}

    def script(fmt: Any, payload: Any, before: int) -> Reply:
        from fastapi import HTTPException  # noqa: PLC0415 - of the provider's own process

        del before
        nonce, is_mixed = provider_answer(fmt, payload)
        if nonce and fails_first(nonce) and nonce not in first:
            first[nonce] = None
            raise HTTPException(500)
        return Reply("MIXED " * is_mixed + answer_to(nonce))

    window = {"window_tokens": WINDOW_TOKENS, "keeps_records": False}
    settings = {
        "open": ProviderSettings(window_tokens=100_000_000, keeps_records=False),
        "openai": ProviderSettings(**window, wording="openai"),
        "bedrock": ProviderSettings(**window, wording="bedrock"),
    }
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(FakeProvider(s, script)) for name, s in settings.items()}
        pipe.send({name: provider.url for name, provider in running.items()})
        with contextlib.suppress(EOFError):  # the end of the run
            pipe.recv()


class _Relay:
    """A TCP relay to a Redis, which can be told another one and a delay for its answers."""

    def __init__(self, target_port: int) -> None:
        self.target_port, self.delay_seconds = target_port, 0.0
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind, before = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:  # Redis is down: so is the connection
            writer.close()
            return
        for source, sink, is_answer in ((reader, before, False), (behind, writer, True)):
            task = asyncio.get_running_loop().create_task(self._pass(source, sink, is_answer=is_answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, is_answer: bool) -> None:
        try:
            while data := await source.read(65_536):
                if is_answer and self.delay_seconds:
                    await asyncio.sleep(self.delay_seconds)
                sink.write(data)
        except OSError:
            pass  # either side is gone, and the other learns it below
        finally:
            sink.close()


def _relayed(pipe: Connection, ports: Mapping[str, int]) -> None:
    """Be the relays, one a plane."""

    async def run() -> None:
        relays = {plane: _Relay(port) for plane, port in ports.items()}
        pipe.send({plane: await relay.start() for plane, relay in relays.items()})
        with contextlib.suppress(EOFError):
            while True:
                plane, name, value = await asyncio.to_thread(pipe.recv)
                setattr(relays[plane], name, value)

    asyncio.run(run())


class Service:
    """A process that runs a function of this module and answers once with its ports or addresses; a context manager."""

    def __init__(self, run: Any, *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=run, args=(theirs, *arguments), daemon=True)
        self._theirs = theirs

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()
        self.answer = self._pipe.recv()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.close()
        self._process.terminate()
        self._process.join()

    @property
    def status(self) -> int | None:
        """The exit status, None while it runs."""
        return self._process.exitcode

    def tell(self, *what: Any) -> None:
        """Send what the function reads."""
        self._pipe.send(what)


def provider() -> Service:
    """Return the providers' process; its answer has their URLs."""
    return Service(_served)


def relays(ports: Mapping[str, int]) -> Service:
    """Return the process of relays to Redis ports, one a plane; its answer has their own ports."""
    return Service(_relayed, dict(ports))


def configuration(plane: str, urls: Mapping[str, str], redis_port: int) -> dict[str, Any]:
    """Return the YAML of a plane's workers.

    Without the plugin nothing can fit a `tight` deployment, so that its provider holds everything there: its requests
    are answered by both planes. What `figures` and `bare` refuse, only the plugin gets answered.
    """
    served = {
        "wide": (urls["open"], WIDE_TOKENS),
        "tight": (urls["openai"] if plane == "with" else urls["open"], WINDOW_TOKENS),
        "figures": (urls["openai"], 200_000),
        "bare": (urls["bedrock"], 200_000),
    }
    models = []
    for kind, (url, window_tokens) in served.items():
        for fmt in FORMATS:
            prefix, path = PREFIXES[fmt]
            params = {"model": f"{prefix}/served", "api_base": url + path, "api_key": "none"}
            info = {"max_input_tokens": window_tokens}
            models.append({"model_name": f"{kind}-{fmt}", "litellm_params": params, "model_info": info})
    return {
        "model_list": models,
        "litellm_settings": {"callbacks": ["soak_watch.watch", *["ctx_hooks.proxy_handler_instance"] * (plane == "with")]},
        "router_settings": {"redis_host": "127.0.0.1", "redis_port": redis_port, "num_retries": 2},
        "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY", "cancel_on_disconnect": True},
    }


class Worker:
    """One proxy process at a port that stays the same over its restarts."""

    def __init__(
        self, plane: str, number: int, config: dict[str, Any], folder: Path, environment: Mapping[str, str]
    ) -> None:
        self.plane, self.name = plane, f"{plane}{number}"
        self.port = free_port()
        self.loop_file = folder / f"{self.name}.loop"
        self.loop_file.touch()
        self.log_lines: Counter[str] = Counter()
        self._config, self._environment, self._folder = config, environment, folder
        self._proxy: ProxyProcess | None = None
        self._tree, self._is_stopped = ROOT, True

    def start(self, tree: Path | None = None) -> None:
        """Start with the plugin of a source tree, by default the last one's; raises RuntimeError if it does not answer."""
        self._tree = tree = tree or self._tree
        paths = os.pathsep.join([str(tree), str(self._folder), self._environment["PYTHONPATH"]])
        environment = {**self._environment, "PYTHONPATH": paths, "SOAK_LOOP": str(self.loop_file)}
        for is_last in (False, True):
            proxy = ProxyProcess(self._config, environment)
            proxy.port, proxy.url = self.port, self.url
            try:
                self._proxy, self._is_stopped = proxy.__enter__(), False
            except RuntimeError:  # a machine that others use may need longer than a start may take
                if is_last:
                    raise
            else:
                return

    def stop(self) -> None:
        """End it as a rolling restart does."""
        self._is_stopped = True
        if self._proxy is not None:
            self._read_log()
            self._proxy.__exit__(None, None, None)
            self._proxy = None

    def kill(self) -> None:
        """End it as the kernel does if it is out of memory."""
        self._is_stopped = True
        if self._proxy is not None:
            os.kill(self.pid, 9)
            self.stop()

    def ended(self) -> dict[str, Any] | None:
        """Return how its process ended that nobody has stopped or killed, None while there is none such.

        `status` is the exit status, a signal's number with a minus; `last_lines` are those of its log.
        """
        if self._is_stopped or self._proxy is None:
            return None
        status = self._proxy._process.poll()  # noqa: SLF001 - only the soak asks
        if status is None:
            return None
        return {"name": self.name, "at": time.time(), "status": status, "last_lines": self._proxy.log().splitlines()[-20:]}

    def _read_log(self) -> None:
        for line in self._proxy.log().splitlines() if self._proxy else ():
            if any(word in line for word in CUT):
                self.log_lines[line[:160]] += 1

    @property
    def url(self) -> str:
        """Its own address, past the balancer."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The process's, 0 for none."""
        return int(self._proxy.shown("stat").split()[0]) if self._proxy else 0

    def figures(self) -> dict[str, Any] | None:
        """Return processor seconds, resident bytes and open descriptors of the running process, None without one."""
        try:
            pid = self.pid
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            if fields[0] == "Z":
                return None  # it was killed, and has no memory any more
            return {
                "pid": pid,
                "processor_seconds": (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
                "resident_bytes": int(fields[21]) * os.sysconf("SC_PAGE_SIZE"),
                "descriptors": sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()),
            }
        except (OSError, RuntimeError):
            return None  # it ends at this moment
