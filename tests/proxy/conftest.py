"""One strict provider for the tests of this folder, and the proxies that several of its files ask.

A proxy starts when it is first asked for, and serves what all modules name: `groups` the proxy, `compared` the plain one,
too, `checked` the one whose Router checks windows itself; behind `elsewhere_` those of another server. `CALLERS` and
`POLICIES` hold for all three.
"""

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from answering_server import answering
from configurations import CONTINUES_CHAT, GENERAL, PATIENT, PLUGIN, WINDOW, configuration, importable, on_path
from fastapi import Request, Response
from on_demand import ON_DEMAND
from proxies import Proxy
from retrieving import seek

from ctx_hooks.testing import Call, FakeProvider, ProviderSettings, Reply

FOLDER = Path(__file__).resolve().parent
SETTINGS = ProviderSettings(
    window_tokens=WINDOW,
    windows={
        "tiny": 60,
        "less": 2_500,
        **dict.fromkeys(("seeker", "claude-seeker"), 4_000),
        **dict.fromkeys(("summarising", "claude-summarising"), 40_000),
        **dict.fromkeys(("large", "wide"), 1_000_000),
        **dict.fromkeys(("answers", "refuses", "hangs", "fails"), 200_000),
    },
    held_models=["hangs"],
    failing_models=["fails"],
)
CACHE_BYTES = 16_000_000
"""Of the requests of all files; by default a proxy keeps more than is to be had beside others of its kind."""
SUMMARIES = {
    "answers": "## Goal\nThe user asks for a review of the project that notes every risk.\n\n## Next steps\nRead the rest.",
    "refuses": "I'm sorry, but I can't help with that.",
}
"""What models write for the summaries add-on, by their name; others hang or fail, as the settings say."""
FALLBACKS = [{"cornered": ["large"]}]
ALIASES = {"nickname": "fitted"}
HEADROOM = {"guardrail": "headroom", "mode": "pre_call", "api_key": "none"}
INTERCEPTION = {"compression_trigger": WINDOW, "compression_target": WINDOW}
DEFAULTS = {"rescue_attempts": 3, "request_may_set": ["language", "off"]}
PARTS = """
import json, pathlib
import ctx_hooks
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth

OWNERS = ("team_id", "user_id", "org_id")
CALLERS = pathlib.Path(__file__).with_name("callers.json")

class Answers(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        logged = kwargs["standard_logging_object"]
        told = {name: logged[name] for name in ("prompt_tokens", "completion_tokens", "response_cost", "request_tags")}
        told |= {name: logged["metadata"][f"user_api_key_{name}"] for name in ("hash", "alias", *OWNERS)}
        told["metadata"] = logged["metadata"]["spend_logs_metadata"]
        print("answered", kwargs["litellm_call_id"], json.dumps(told), flush=True)

async def user_api_key_auth(request, api_key):
    who = api_key.removeprefix("sk-")
    if who.startswith("ctx-hooks-demo"):
        return UserAPIKeyAuth(api_key=api_key, user_role="proxy_admin")
    known = json.loads(CALLERS.read_text()).get(who, {})
    return UserAPIKeyAuth(**{"api_key": api_key, "token": api_key, "team_id": who, "team_alias": who.upper(), **known})

ctx_hooks.on("answer", lambda event: print("learned of", event.call.model_group, flush=True))
def told(item):
    print("compaction item", item.outcome, "of", item.call.model_group, "for", item.call.team_id, flush=True)

ctx_hooks.on("compaction_item", told)
ctx_hooks.on("summary", lambda event: print("summary", event.outcome, "of", event.call.call_id, flush=True))
handler = Answers()
"""
"""Who a key belongs to: the team of that name, or as CALLERS say. And a second callback: LiteLLM tells them in their order,
so the plugin has learned by then. Of a route whose answers LiteLLM logs under another id, the group is named."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run this folder first, and then the files beside it: they take longest, and the last files are to be short ones."""
    items.sort(key=lambda item: (not item.path.is_relative_to(FOLDER), item.path.parent != FOLDER.parent))


def script(fmt, payload, answered):
    """Answer; a model for files asks for the next one, and one that seeks for what was cut."""
    if payload["model"].endswith("seeker"):
        return seek(fmt, payload, answered)
    if payload["model"].endswith("summarising") and "Write a summary of this conversation" in json.dumps(payload):
        return Reply("## Goal: tune the piano\n## Rules: use only the silver fork")
    if payload["model"] in SUMMARIES:
        return Reply(SUMMARIES[payload["model"]])
    if payload["model"].startswith("files"):
        return Reply(calls=[Call("read_file", {"path": f"src/file_{answered}.py"})])
    return Reply("Answer to what was asked.")


@pytest.fixture(scope="session")
def provider():
    with FakeProvider(SETTINGS, script, [ON_DEMAND]) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh_provider(request):
    """Forget what the tests before have asked of the provider; a module with one of its own does so itself."""
    if "provider" in request.fixturenames and not hasattr(request.module, "provider"):
        request.getfixturevalue("provider").reset(**asdict(SETTINGS))


@pytest.fixture(scope="session")
def modules(request):
    """The modules of this folder whose tests are run."""
    return list(dict.fromkeys(item.module for item in request.session.items if item.path.is_relative_to(FOLDER)))


@pytest.fixture(scope="session")
def callers(modules, tmp_path_factory):
    """The file in which it says who a key belongs to; what is written to it holds from the next request on."""
    folder = tmp_path_factory.mktemp("parts")
    known = {who: fields for module in modules for who, fields in getattr(module, "CALLERS", {}).items()}
    (folder / "callers.json").write_text(json.dumps(known))
    importable(folder, "parts", PATIENT + PARTS)
    return folder / "callers.json"


@pytest.fixture(scope="session")
def elsewhere():
    """A server beside the provider, which answers every request as its `answer` does."""
    server = SimpleNamespace()

    async def answer(request: Request) -> Response:
        return await server.answer(request)

    with answering(answer) as server.url:
        yield server


@pytest.fixture(scope="session")
def pass_on(provider):
    """Return the provider's answer to a request that came to the other server."""

    async def passed(request: Request) -> Response:
        async with httpx.AsyncClient() as client:
            found = await client.post(provider.url + request.url.path, json=await request.json(), timeout=300)
        return Response(found.content, found.status_code, media_type=found.headers["content-type"])

    return passed


@pytest.fixture(scope="session")
def started(provider, elsewhere, modules, callers):
    """Start a proxy that serves the groups that modules name."""

    def start(*named, callbacks=(PLUGIN, "parts.handler"), environment=(), **router_settings):
        urls = dict.fromkeys(named, provider.url) | {f"elsewhere_{name}": elsewhere.url for name in named}
        listed = [(getattr(module, name), urls[name]) for module in modules for name in urls if hasattr(module, name)]
        models = [model for groups, url in listed for model in groups(url)]
        fallbacks = [*FALLBACKS, *(own for module in modules for own in getattr(module, "FALLBACKS", []))]
        policies = {"defaults": DEFAULTS, "cache_bytes": CACHE_BYTES}
        for module in modules:
            for scope, own in getattr(module, "POLICIES", {}).items():
                policies[scope] = policies.get(scope, {}) | own
        config = configuration(
            provider.url,
            *configuration(provider.url)["model_list"],
            *models,
            litellm_settings={"callbacks": list(callbacks), "context_window_fallbacks": fallbacks},
            general_settings={**GENERAL, "cancel_on_disconnect": True, "custom_auth": "parts.user_api_key_auth"},
            router_settings={"model_group_alias": ALIASES, "num_retries": 2, **router_settings},
            callback_settings={"ctx_hooks": policies, "compression_interception": INTERCEPTION},
            guardrails=[{"guardrail_name": "headroom", "litellm_params": {**HEADROOM, "api_base": elsewhere.url}}],
            files_settings=[{"custom_llm_provider": "openai", "api_base": f"{elsewhere.url}/v1", "api_key": "none"}],
        )
        config["litellm_settings"]["fallbacks"] = [{"breaking": ["other"]}]
        names = {"OPENAI_API_BASE": f"{elsewhere.url}/v1", "OPENAI_BASE_URL": f"{elsewhere.url}/v1"}
        names |= {"ANTHROPIC_API_BASE": elsewhere.url, "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
        return Proxy(config, on_path(callers.parent) | names | dict(environment))

    return start


@pytest.fixture(scope="session")
def proxy(started):
    with started("groups", "compared") as running:
        yield running


@pytest.fixture(scope="session")
def plain_proxy(started):
    """Deployments of the same names without the plugin."""
    with started("compared", callbacks=["parts.handler"]) as running:
        yield running


@pytest.fixture(scope="session")
def checking(started):
    """A proxy whose Router compares each request with the window itself, and continues broken streams.

    It reserves no tokens against a key's limit.
    """
    continues = {"enable_mid_stream_fallback_continuation": True} if CONTINUES_CHAT else {}
    unreserved = {"LITELLM_TPM_TOKEN_RESERVATION_ENABLED": "false"}
    with started("checked", environment=unreserved, enable_pre_call_checks=True, **continues) as running:
        yield running
