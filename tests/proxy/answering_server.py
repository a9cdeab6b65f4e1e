"""An HTTP server on loopback that gives every POST request to one function, and others if a test asks for them."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI, Request, Response

from ctx_hooks.testing import free_port


@contextmanager
def answering(answer: Callable[[Request], Awaitable[Response]], *methods: str) -> Iterator[str]:
    """Serve `answer` in a thread, and yield the server's address."""
    app, port = FastAPI(), free_port()
    app.api_route("/{path:path}", methods=["POST", *methods])(answer)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}"
    server.should_exit = True
    thread.join(10)
