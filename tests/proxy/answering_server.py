"""An HTTP server on loopback that gives every POST request to one function, and others if a test asks for them."""

import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI, Request, Response


@contextmanager
def answering(answer: Callable[[Request], Awaitable[Response]], *methods: str) -> Iterator[str]:
    """Serve `answer` in a thread, and yield the server's address."""
    app = FastAPI()
    app.api_route("/{path:path}", methods=["POST", *methods])(answer)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    with socket.create_server(("127.0.0.1", 0)) as listening:  # it queues what comes before the server has started
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)
