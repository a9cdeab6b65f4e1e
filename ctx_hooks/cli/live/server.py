"""`ctx-hooks serve FOLDER`: a live page of event files, also inside LiteLLM's own dashboard. It shows no text of a message.

LiteLLM's dashboard loads the page in a frame and posts an identity claim to it: {user_id, user_role, plugin, exp}, encrypted
by Fernet with HMAC-SHA256(LITELLM_SALT_KEY, the plugin's name) (https://docs.litellm.ai/docs/proxy/plugins). With a key
nothing but the empty page and the manifest is served without a valid claim of an admin.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ctx_hooks.cli.files import files_of
from ctx_hooks.cli.live.watching import SHORTENED, Row, Watched
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.terminal import CommandError, tell

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request

NAME = "ctx-hooks"
KEY_VARIABLE, SALT_VARIABLE = "CTX_HOOKS_DASHBOARD_KEY", "LITELLM_SALT_KEY"
ADMINS = frozenset({"proxy_admin", "proxy_admin_viewer"})
CLAIM_SECONDS, SESSION_SECONDS = 30, 8 * 3_600
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})
MOST_SHOWN, MOST_SLOTS, MOST_CHOICES = 200, 60, 500
FILTERS = ("group", "team", "session", "mode")
MANIFEST = {
    "name": NAME,
    "display_name": "Context",
    "nav_items": [{"key": "context", "label": "Context", "icon": "CompressOutlined", "path": "/"}],
    "capabilities": ["reports"],
}


def run(*, events: Sequence[str], host: str, port: int) -> None:
    """Serve the page until the process is stopped.

    Raises:
        CommandError: a file is missing, or an address beyond this machine is to be served without a key.
    """
    import uvicorn  # noqa: PLC0415 - not for --help

    key = dashboard_key()
    if host not in LOOPBACK and not key:
        raise CommandError(f"{host} is reachable from elsewhere: set {SALT_VARIABLE} or {KEY_VARIABLE}, or leave --host out")
    files_of(events, "events.*.jsonl*")  # a misspelt folder is named at once
    watched = Watched(lambda: files_of(events, "events.*.jsonl*"))
    threading.Thread(target=watched.follow, daemon=True, name="ctx_hooks events").start()
    tell({"url": f"http://{host}:{port}"}, f"http://{host}:{port}   (Ctrl-C ends it)")
    uvicorn.run(application(watched, key), host=host, port=port, log_level="warning")


def dashboard_key() -> bytes:
    """Return the key of claims for this plugin, b"" without one: the derived key itself, or made of LiteLLM's salt."""
    derived, salt = os.environ.get(KEY_VARIABLE, ""), os.environ.get(SALT_VARIABLE, "")
    if derived:
        return derived.encode()
    return base64.urlsafe_b64encode(hmac.new(salt.encode(), NAME.encode(), hashlib.sha256).digest()) if salt else b""


class Admission:
    """Who may see figures: with a `key` admins with a valid claim, without one anybody on this machine."""

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._sessions: dict[str, float] = {}

    def allows(self, request: Request) -> bool:
        """Whether a request may have figures; no page of another name that resolves to this machine may."""
        if not self.key:
            return request.url.hostname in LOOPBACK
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        return self._sessions.get(token, 0.0) > time.time()

    async def sign_in(self, request: Request) -> Response:
        """Answer a claim of LiteLLM's dashboard with a token, or with 401."""
        try:
            claim = json.loads(await request.body())["session_claim"]
            known = json.loads(Fernet(self.key).decrypt(claim.encode(), ttl=CLAIM_SECONDS))
            is_valid = known["plugin"] == NAME and known["exp"] >= time.time() and known["user_role"] in ADMINS
        except (ValueError, KeyError, TypeError, AttributeError, InvalidToken):  # no key, or no claim made with it
            is_valid = False
        if not is_valid:
            return JSONResponse({"error": "no valid claim of an admin"}, 401)
        now, token = time.time(), secrets.token_urlsafe(32)
        self._sessions = {name: ends for name, ends in self._sessions.items() if ends > now}
        self._sessions[token] = now + SESSION_SECONDS
        return JSONResponse({"token": token})

    def guarded(self, answer: Callable[[Request], Any]) -> Callable[[Request], Awaitable[Response]]:
        """Return a route that gives what `answer` returns to those who may see it; None is not found."""

        async def guard(request: Request) -> Response:
            if not self.allows(request):
                return JSONResponse({"error": "not allowed"}, 401)
            found = await run_in_threadpool(answer, request)
            return JSONResponse(found, 404 if found is None else 200, {"cache-control": "no-store"})

        return guard


def application(watched: Watched, key: bytes = b"") -> Starlette:
    """Return the server; with a `key` its figures are for admins with a claim, without one for this machine only."""
    admission = Admission(key)

    async def page(_: Request) -> Response:
        nonce, framed_by = secrets.token_urlsafe(16), "*" if key else "'none'"
        policy = f"default-src 'none'; connect-src 'self'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'"
        headers = {"content-security-policy": f"{policy}; frame-ancestors {framed_by}"}
        return HTMLResponse(render("live.html", nonce=nonce, is_locked=bool(key)), headers=headers)

    async def manifest(_: Request) -> Response:
        return JSONResponse({**MANIFEST, "version": version("ctx-hooks")})

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/plugin-manifest", manifest),
            Route("/api/plugin-auth", admission.sign_in, methods=["POST"]),
            Route("/api/state", admission.guarded(lambda request: state_of(watched, dict(request.query_params)))),
            Route("/api/requests/{id}", admission.guarded(lambda request: details_of(watched, request.path_params["id"]))),
        ]
    )


def state_of(watched: Watched, asked: dict[str, str]) -> dict[str, Any]:
    """Return what the page shows: totals, a series in time, the newest requests, and what else happened."""
    rows = watched.rows(**{name: asked.get(name, "") for name in FILTERS})
    everything = watched.rows()
    named = {name: Counter(getattr(row, name) for row in everything) for name in FILTERS}
    return {
        "progress": min(1.0, watched.read_bytes / watched.all_bytes) if watched.all_bytes else 1.0,
        "events": sum(watched.kinds.values()),
        "unreadable": watched.unreadable,
        "totals": {mode: totals_of([row for row in rows if row.mode == mode]) for mode in ("enforce", "observe")},
        "series": series_of(rows),
        "requests": [row.shown() for row in rows[: -MOST_SHOWN - 1 : -1]],
        "limits": list(watched.notes["limits"])[::-1],
        "faults": list(watched.notes["faults"])[::-1],
        "choices": {name: [each for each, _ in found.most_common(MOST_CHOICES) if each] for name, found in named.items()},
    }


def totals_of(rows: Sequence[Row]) -> dict[str, float]:
    """Return the sums over requests of one mode."""
    long = [row for row in rows if row.is_too_long]
    return {
        "requests": len(rows),
        "too_long": len(long),
        "failed": sum(row.outcome == "failed" for row in long),
        "fallback": sum(row.outcome == "fallback" for row in long),
        "shortened": sum(row.outcome in SHORTENED for row in long),
        "refused": sum(row.refused for row in rows),
        "saved": sum(row.saved or 0 for row in rows),
        "dollars": sum(row.dollars or 0.0 for row in rows),
        "input": sum(row.input or 0 for row in rows),
        "cached": sum(row.cached or 0 for row in rows),
    }


def series_of(rows: Sequence[Row]) -> list[dict[str, float]]:
    """Return counts of requests in slots of equal time."""
    if not rows:
        return []
    first, last = min(row.at for row in rows), max(row.at for row in rows)
    width = max(1.0, (last - first) / MOST_SLOTS)
    slots = [{"at": first + n * width, "fits": 0.0, "shortened": 0.0, "failed": 0.0} for n in range(MOST_SLOTS)]
    for row in rows:
        slot = slots[min(MOST_SLOTS - 1, int((row.at - first) / width))]
        slot["failed" if row.outcome == "failed" else "shortened" if row.is_too_long else "fits"] += 1
    return slots


def details_of(watched: Watched, request_id: str) -> dict[str, Any] | None:
    """Return a request with its events, None for an unknown one."""
    row = watched.row(request_id)
    return None if row is None else {**row.shown(), "events": [_without_call(line) for line in row.lines]}


def _without_call(line: bytes) -> dict[str, Any]:
    return {name: value for name, value in json.loads(line).items() if name != "call"}
