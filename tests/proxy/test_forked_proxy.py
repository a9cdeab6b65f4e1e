"""The tests' proxies are forks of one process: on every route each answers as a started one does.

`-m deploy`: it starts a proxy, and only another LiteLLM or another fork server can break it.
"""

import re

import pytest
from configurations import configuration
from proxies import Proxy
from routes import NAMES, ROUTES

from ctx_hooks.testing import ProxyProcess

CHANGING = re.compile(
    r"(chatcmpl|resp|msg|call|toolu|litellm|rs)[-_][\w=+/-]{8,}|\b\d{10}(\.\d+)?\b|[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{32}\b|127\.0\.0\.1:\d+"
)
"""Ids, times and ports."""
MEASURED = re.compile(r".*date|content-length|.*(duration|overhead|seconds|timing|-ms).*")


class Started(Proxy):
    """The same in a process of its own."""

    def _started(self, arguments, folder):
        return ProxyProcess._started(self, arguments, folder)  # noqa: SLF001 - the seam between the two


@pytest.fixture(scope="module")
def two(provider):
    settings = {"callback_settings": {"ctx_hooks": {"defaults": {"reserve": 1_024}}}}
    config = configuration(provider.url, **settings)
    with Proxy(config) as forked, Started(config) as started:
        assert (forked.forked, started.forked) == (True, False)  # else all proxies of the tests start in ten times the time
        yield forked, started


@pytest.mark.deploy
@pytest.mark.parametrize(("route", "name"), zip(ROUTES, NAMES, strict=True), ids=NAMES)
def test_a_fork_answers_each_route_as_a_started_proxy_does(route, name, two, provider):
    stream = NAMES.index(name) % 2 == 1
    fork, start = (asked(proxy, provider, route, f"{name}-{'streamed' if stream else 'whole'}", stream) for proxy in two)
    assert fork == start
    assert [status for status, _ in fork[-1]] == [400, 200]


def asked(proxy, provider, route, group, stream):
    provider.reset()
    answer = route.ask(proxy, group=group, stream=stream)
    headers = {name: CHANGING.sub("", value) for name, value in answer.headers.items() if not MEASURED.fullmatch(name)}
    sent = [(r["status"], r["payload"]) for r in provider.requests()]
    return answer.status_code, headers, CHANGING.sub("", answer.text), sent
