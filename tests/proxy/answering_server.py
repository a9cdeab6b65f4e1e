"""An HTTP server on loopback that gives every POST request to one function, and others if a test asks for them."""

import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI, Request, Response

from ctx_hooks.testing import Reply, streams
from ctx_hooks.testing.rules import Format


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


async def pieces_of(request: Request, text: str, tokens: int = 10) -> list[str]:
    """Return a provider's answer to a request of any of OpenAI's formats or Anthropic's: one JSON text, or its events."""
    payload = await request.json()
    fmt = format_at(request.url.path)
    whole = streams.whole(fmt, payload, Reply(text), tokens, 0)
    if not payload.get("stream"):
        return [json.dumps(whole)]
    if fmt == "openai-responses":
        return [event async for event in streams.response_stream(whole)]
    return [event async for event in streams.stream(fmt, payload, Reply(text), tokens, 0)]


def as_sent(pieces: list[str]) -> Response:
    """Return an answer as the server sends it; JSON is one piece that begins with a bracket."""
    text = "".join(pieces)
    return Response(text, media_type="application/json" if text[:1] in ("{", "[") else "text/event-stream")


def format_at(path: str) -> Format:
    ends: dict[str, Format] = {"messages": "anthropic", "responses": "openai-responses"}
    return ends.get(path.rsplit("/", 1)[1], "openai-chat")
