"""`ctx-hooks serve FOLDER`: a live page of event files, also inside LiteLLM's own dashboard. It shows no text of a message.

LiteLLM's dashboard loads the page in a frame and posts an identity claim to it: {user_id, user_role, plugin, exp}, encrypted
by Fernet with HMAC-SHA256(LITELLM_SALT_KEY, the plugin's name) (https://docs.litellm.ai/docs/proxy/plugins). With a key
nothing but the empty page and the manifest is served without a valid claim of an admin.
"""

import base64
import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import uvicorn
from cryptography.fernet import Fernet, InvalidToken
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from ctx_hooks.cli.configuration import DASHBOARD
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.report.event_files import Watched, event_files
from ctx_hooks.cli.report.page import Figures, shown
from ctx_hooks.cli.terminal import CommandError, tell

NAME = DASHBOARD["name"]
KEY_VARIABLE, SALT_VARIABLE = "CTX_HOOKS_DASHBOARD_KEY", "LITELLM_SALT_KEY"
ADMINS = frozenset({"proxy_admin", "proxy_admin_viewer"})
CLAIM_SECONDS, SESSION_SECONDS = 30, 8 * 3_600
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]", "::1"})
MOST_SHOWN, MOST_CHOICES = 200, 500
FILTERS = ("group", "team", "session", "mode")
MANIFEST = {
    "name": NAME,
    "display_name": DASHBOARD["display_name"],
    "nav_items": [{"key": "context", "label": DASHBOARD["display_name"], "icon": "CompressOutlined", "path": "/"}],
    "capabilities": ["reports"],
}


def run(*, events: Sequence[str], host: str, port: int) -> None:
    """Serve the page until Ctrl-C; raises CommandError without files, or for another address without a key."""
    key = dashboard_key()
    if host not in LOOPBACK and not key:
        raise CommandError(f"{host} is reachable from elsewhere: set {SALT_VARIABLE} or {KEY_VARIABLE}, or leave --host out")
    event_files(events)  # a misspelt folder is named at once
    watched = Watched(events)
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
        self.key, self._sessions = key, dict[str, float]()

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


def application(watched: Watched, key: bytes = b"") -> Starlette:
    """Return the server; with a `key` its figures are for admins with a claim, without one for this machine only."""
    admission = Admission(key)

    async def page(_: Request) -> Response:
        nonce, framed_by = secrets.token_urlsafe(16), "*" if key else "'none'"
        policy = f"default-src 'none'; connect-src 'self'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'"
        policy = f"{policy}; style-src-attr 'unsafe-inline'; frame-ancestors {framed_by}"
        headers = {"content-security-policy": policy}
        return HTMLResponse(render("live.html", nonce=nonce, is_locked=bool(key)), headers=headers)

    async def state(request: Request) -> Response:
        if not admission.allows(request):
            return JSONResponse({"error": "not allowed"}, 401)
        found = await run_in_threadpool(state_of, watched, request.query_params)
        return JSONResponse(found, headers={"cache-control": "no-store"})

    async def manifest(_: Request) -> Response:
        return JSONResponse({**MANIFEST, "version": version("ctx-hooks")})

    return Starlette(
        routes=[
            Route("/", page),
            Route("/api/plugin-manifest", manifest),
            Route("/api/plugin-auth", admission.sign_in, methods=["POST"]),
            Route("/api/state", state),
        ]
    )


def state_of(watched: Watched, asked: Mapping[str, str]) -> dict[str, Any]:
    """Return what the page shows of the requests with the asked names, and the names to choose from."""
    turns = list(watched.turns.values())
    named = [turn.names for turn in turns]
    wanted = {name: asked[name] for name in FILTERS if asked.get(name)}
    found = [turn for turn, names in zip(turns, named, strict=True) if wanted.items() <= names.items()]
    figures = Figures()
    for turn in found:
        if turn.end is not None:
            figures.count(turn.end)
    shows = {
        "turns": found[: -MOST_SHOWN - 1 : -1],
        "chosen": next((turn for turn in turns if turn.call.request_id == asked.get("chosen")), None),
        "notes": {kind: list(events)[::-1] for kind, events in watched.notes.items()},
    }
    choices = {name: Counter(names[name] for names in named).most_common(MOST_CHOICES) for name in FILTERS}
    return {
        "progress": min(1.0, watched.read_bytes / watched.all_bytes) if watched.all_bytes else 1.0,
        "events": watched.events,
        "unreadable": watched.unreadable,
        "choices": {name: [each for each, _ in common if each] for name, common in choices.items()},
        "html": render("live_figures.html", **shows, **shown(figures)),
    }
