"""Each recipe of docs/install.md installs the plugin: a real LiteLLM from what it installed answers an overflow."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from environments import ROOT, done
from recipes import arguments_of_image, commands, container_of, dockerfile, installed_to, yaml_file
from redis_process import RedisProcess
from uv import find_uv_bin

from ctx_hooks.testing import LOOPBACK, MASTER_KEY, FakeProvider, ProviderSettings, ProxyProcess, agent_session

pytestmark = pytest.mark.deploy

IN_CONTAINER = "/opt/ctx_hooks"
CONFIG_IN_CONTAINER = "/app/config.yaml"
KEYS = {
    **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "LOCAL_API_KEY"), "not-a-key"),
    "LOCAL_API_BASE": "http://127.0.0.1:9",  # of a model group that is not asked
    "PROXY_MASTER_KEY": MASTER_KEY,
    "PYTHONDONTWRITEBYTECODE": "",  # LiteLLM is compiled at the first start of an environment alone
}
OVERFLOWING = agent_session("openai-chat", turns=20, result_chars=2_000, model="gpt")
SMALL = {"model": "gpt", "messages": [{"role": "user", "content": "Hello."}]}


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(ProviderSettings(window_tokens=6_000)) as running:
        yield running


@contextmanager
def started(program: Path, config: dict[str, Any], provider: FakeProvider, **variables: str) -> Iterator[ProxyProcess]:
    """Start a `litellm` without this tree on its path, and with the deployments of a configuration at the provider."""
    for model in config["model_list"]:
        model["litellm_params"]["api_base"] = f"{provider.url}/v1"
    with ProxyProcess(config, {**KEYS, "PYTHONPATH": "", **variables}, program=program) as proxy:
        yield proxy


def asked(proxy: ProxyProcess, provider: FakeProvider, payload: dict[str, Any]) -> tuple[httpx.Response, list[int]]:
    """Return the answer of the chat route, and the status of each attempt that the provider saw."""
    provider.reset()
    answer = LOOPBACK.post(f"{proxy.url}/v1/chat/completions", json=payload, headers=proxy.headers, timeout=60)
    return answer, [attempt["status"] for attempt in provider.requests()]


def assert_rescued(proxy: ProxyProcess, provider: FakeProvider) -> None:
    """The provider refuses what was sent, which is more than its window, and the client gets an answer all the same."""
    answer, attempts = asked(proxy, provider, OVERFLOWING)
    assert (answer.status_code, attempts) == (200, [400, 200]), (answer.text, proxy.log())
    assert answer.headers["x-ctx-hooks-decision"] == "retried"


def without_the_callback(config: dict[str, Any]) -> dict[str, Any]:
    """Remove the one line that docs/install.md names; what else concerns the plugin stays."""
    config["litellm_settings"]["callbacks"].remove("ctx_hooks.proxy_handler_instance")
    return config


def test_pip_installs_beside_litellm_and_uninstalling_is_one_line(litellm_alone, provider, tmp_path):
    install, check, start = commands("pip")
    assert start == "litellm --config litellm_config.yaml"
    litellm_alone.run(install, tmp_path)
    assert litellm_alone.run(check, ROOT)
    with started(litellm_alone.program("litellm"), yaml_file("litellm_config.yaml"), provider) as proxy:
        assert_rescued(proxy, provider)

    (uninstall,) = commands("Uninstall")
    litellm_alone.run(uninstall, tmp_path)
    litellm_alone.run("! python -c 'import ctx_hooks'", tmp_path)
    config = without_the_callback(yaml_file("litellm_config.yaml"))
    assert config["callback_settings"]["ctx_hooks"]
    with started(litellm_alone.program("litellm"), config, provider) as proxy:
        answer, attempts = asked(proxy, provider, SMALL)
        assert (answer.status_code, attempts) == (200, [200])
        answer, _ = asked(proxy, provider, OVERFLOWING)
        assert answer.status_code == 400
        assert not [name for name in answer.headers if "ctx-hooks" in name]


def test_uv_installs_litellm_as_a_tool_with_the_plugin(package, constraints, provider, tmp_path):
    install, start = commands("uv")
    assert start == "litellm --config litellm_config.yaml"
    folders = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    versions = {"UV_CONSTRAINT": str(constraints), "UV_FIND_LINKS": str(package.folder), "UV_PYTHON": sys.executable}
    path = os.pathsep.join([str(Path(find_uv_bin()).parent), os.environ["PATH"]])
    done("sh", "-c", install, cwd=tmp_path, env={**folders, **versions, "PATH": path})
    with started(tmp_path / "bin" / "litellm", yaml_file("litellm_config.yaml"), provider) as proxy:
        assert_rescued(proxy, provider)


@pytest.fixture(scope="module")
def image(environment, tmp_path_factory) -> dict[str, str]:
    """The variables that the Dockerfile adds to LiteLLM's image, once its RUN has been run."""
    folder = tmp_path_factory.mktemp("image")
    steps = dockerfile()
    (run,) = (arguments for name, arguments in steps if name == "RUN")
    command = [str(environment.package.folder) if word == "/here" else word for word in shlex.split(run)]
    environment.run(installed_to(command, folder, IN_CONTAINER), folder)
    assert ("COPY", f"--from=package {IN_CONTAINER} {IN_CONTAINER}") in steps
    variables = dict(arguments.split("=", 1) for name, arguments in steps if name == "ENV")
    return {name: value.replace(IN_CONTAINER, str(folder)) for name, value in variables.items()}


def test_an_image_of_ones_own_has_the_command_line(litellm_alone, image):
    """That LiteLLM of this image answers an overflow, the Compose recipe shows, which builds the same."""
    _, run = commands("Docker: an image of your own")
    mounts, _, arguments = container_of(run)
    assert mounts == {CONFIG_IN_CONTAINER: "./litellm_config.yaml"}
    assert not arguments
    assert arguments_of_image()[:2] == ["--config", CONFIG_IN_CONTAINER]
    checked = litellm_alone.run(f"python -m ctx_hooks check {ROOT}/litellm_config.yaml", ROOT, **image)
    assert "local" in checked


def test_a_mounted_package(litellm_alone, provider, tmp_path):
    install, run = commands("Docker: a mounted package")
    litellm_alone.run(install, tmp_path)
    mounts, variables, arguments = container_of(run)
    assert arguments == ["--config", CONFIG_IN_CONTAINER]
    config = yaml_file(mounts[CONFIG_IN_CONTAINER])
    folder = str(tmp_path / mounts[variables["PYTHONPATH"]])
    with started(litellm_alone.program("litellm"), config, provider, PYTHONPATH=folder) as proxy:
        assert_rescued(proxy, provider)


def test_compose_shares_through_redis_and_shows_metrics(litellm_alone, image, provider):
    named = yaml_file("docs/deploy/compose.yaml")["services"]["litellm"]["environment"]
    job = yaml_file("docs/deploy/prometheus.yml")["scrape_configs"][0]
    config = yaml_file("docs/deploy/litellm_config.yaml")
    with RedisProcess() as redis:
        given = {"REDIS_HOST": "127.0.0.1", "REDIS_PORT": str(redis.port)}
        assert set(given) | {"LITELLM_MASTER_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"} == set(named)
        with started(litellm_alone.program("litellm"), config, provider, **image, **given) as proxy:
            assert_rescued(proxy, provider)
            proxy.wait_until(lambda: "ctx_hooks:stats:" in keys_of(redis.port), "a limit to be shared")
            shown = LOOPBACK.get(proxy.url + job["metrics_path"], headers=proxy.headers, timeout=30)
            assert "ctx_hooks_answers_beyond_window_total{" in shown.text
            assert LOOPBACK.get(proxy.url + job["metrics_path"], timeout=30).status_code == 401


def test_helm(litellm_alone, provider, tmp_path):
    values = yaml_file("docs/deploy/helm-values.yaml")
    (container,) = values["extraInitContainers"]
    litellm_alone.run(installed_to(container["command"], tmp_path, IN_CONTAINER), tmp_path)
    variables = {name: value.replace(IN_CONTAINER, str(tmp_path)) for name, value in values["envVars"].items()}
    with started(litellm_alone.program("litellm"), values["proxy_config"], provider, **variables) as proxy:
        assert_rescued(proxy, provider)


def keys_of(port: int) -> str:
    return done("redis-cli", "-p", str(port), "--scan", cwd=ROOT)
