"""One ladder: whatever function of the plugin raises, a request above its window is answered, shortened, with one warning.

The first and the last function of each module that take part are broken in turn, by the swap of their code in a proxy.
"""

import json
import sys
from pathlib import Path

import pytest
from configurations import PLUGIN, configuration, on_path
from proxies import Proxy
from routes import NAMES, ROUTES

from ctx_hooks.testing import FakeProvider, ProviderSettings

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="code has its qualified name from 3.11 on")

HERE = Path(__file__).resolve().parent
WINDOW = 3_000
ROOMS = (
    "compaction", "message_rules", "formats", "tokens", "engine", "conversation", "texts", "learning", "telemetry", "store",
)  # fmt: skip
WARNING = "ctx_hooks failed and drops the oldest turns"
FOUR = [
    next(route for route in ROUTES if route.fmt == fmt) for fmt in ("openai-chat", "anthropic", "openai-responses", "gemini")
]
SPARED = (
    "ctx_hooks.compaction.plain_cut",  # the last step of the ladder
    "ctx_hooks.flow.engine:decide_by_plain_cut",
    "ctx_hooks.flow.decision",  # the values in which decisions are written
    "ctx_hooks.conversation.model",
    "ctx_hooks.formats.fields",  # reads LiteLLM's own metadata, before anything is decided
    "ctx_hooks.tokens.units",
    "ctx_hooks.tokens.budget",  # the window of a target
    "ctx_hooks.formats.wire_format:WireFormat.<lambda>",  # without these there is no request
    "ctx_hooks.formats.wire_format:WireFormat.counted_values",
    "ctx_hooks.formats.openai_responses:<lambda>",
    "ctx_hooks.formats.gemini:<lambda>",
    *(f"ctx_hooks.formats.gemini:{name}" for name in ("_config_of", "_value_of", "_name_in")),
)


@pytest.fixture(scope="module")
def provider():
    with FakeProvider(ProviderSettings(window_tokens=WINDOW)) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(provider):
    config = configuration(provider.url)
    config["litellm_settings"] = {"callbacks": ["faulty.handler", PLUGIN]}
    with Proxy(config, on_path(HERE)) as running:
        yield running


def ask(proxy, route, fault, seed, group=None):
    headers = {**proxy.headers, "x-fault": fault}
    return route.ask(proxy, group=group or route.fitted, headers=headers, seed=seed)


@pytest.fixture(scope="module")
def functions(proxy):
    """Return two functions of each module that take part in a compressed request, and the routes on which they do."""
    found = {}
    for number, route in enumerate(FOUR):
        for seed in (100 + number, 200 + number):
            ask(proxy, route, "record", seed)
        ask(proxy, route, "end", 300 + number)
        for name in json.loads((HERE / "called.json").read_text()):
            found.setdefault(name, []).append(route)
    (HERE / "called.json").unlink()
    wanted = [n for n in found if n.split(".")[1] in ROOMS and not n.startswith(SPARED) and "__" not in n]
    by_module = {}
    for name in wanted:
        by_module.setdefault(name.partition(":")[0], []).append(name)
    chosen = [name for names in by_module.values() for name in {names[0], names[-1]}]
    return {name: found[name] for name in sorted(chosen)}


def test_each_fault_ends_in_shortened_request(functions, proxy, provider):
    """All in one test: the functions are known only once the proxy has run."""
    assert len(functions) > 40
    failures, named = [], 0
    for number, (name, routes) in enumerate(functions.items()):
        route = routes[number % len(routes)]
        provider.reset()
        before = proxy.log().count(WARNING)
        answer = ask(proxy, route, name, 1_000 + number)
        warnings = proxy.log().count(WARNING) - before
        named += "reason=failed: RuntimeError" in answer.headers.get("x-ctx-hooks", "")
        statuses = [record["status"] for record in provider.requests()]
        decision = answer.headers.get("x-ctx-hooks-decision")
        if (answer.status_code, decision, statuses) != (200, "compressed", [200]) or warnings > 1:
            failures.append((name, route.fmt, answer.status_code, decision, statuses, warnings))
    assert failures == [], "\n".join(map(str, failures))
    assert named > len(functions) / 2


@pytest.mark.parametrize("route", FOUR, ids=[route.fmt for route in FOUR])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("whole", "ctx_hooks.compaction.pipeline:compress"),  # the last resort follows
        ("streamed", "ctx_hooks.formats:MessageReader.message"),  # the last resort fails, too
    ],
)
def test_fault_skips_no_retry(kind, name, route, proxy, provider):
    provider.reset()
    answer = ask(proxy, route, name, 5_000, group=f"{NAMES[ROUTES.index(route)]}-{kind}")
    assert answer.status_code == 200, answer.text
    assert [record["status"] for record in provider.requests()] == [400, 200]
    assert answer.headers["x-ctx-hooks-decision"] == "retried"
