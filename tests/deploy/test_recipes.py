"""Each recipe for containers installs the plugin: a real LiteLLM from what it installed answers an overflow."""

import shlex

import pytest
from deployed import assert_rescued, started
from environments import ROOT, done
from recipes import arguments_of_image, commands, container_of, dockerfile, installed_to, yaml_file
from redis_process import RedisProcess

from ctx_hooks.testing import LOOPBACK

pytestmark = pytest.mark.deploy

IN_CONTAINER = "/opt/ctx_hooks"
CONFIG_IN_CONTAINER = "/app/config.yaml"


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


def test_own_image_has_command_line(litellm_alone, image):
    """That LiteLLM of this image answers an overflow, the Compose recipe shows, which builds the same."""
    _, run = commands("Docker: an image of your own")
    mounts, _, arguments = container_of(run)
    assert mounts == {CONFIG_IN_CONTAINER: "./litellm_config.yaml"}
    assert not arguments
    assert arguments_of_image()[:2] == ["--config", CONFIG_IN_CONTAINER]
    checked = litellm_alone.run(f"python -m ctx_hooks check {ROOT}/litellm_config.yaml", ROOT, **image)
    assert "local" in checked


def test_mounted_package_rescues(litellm_alone, provider):
    install, run = commands("Docker: a mounted package")
    litellm_alone.run(install, litellm_alone.package.checkout)
    mounts, variables, arguments = container_of(run)
    assert arguments == ["--config", CONFIG_IN_CONTAINER]
    config = yaml_file(mounts[CONFIG_IN_CONTAINER])
    folder = str(litellm_alone.package.checkout / mounts[variables["PYTHONPATH"]])
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
            proxy.wait_until(lambda: "ctx_hooks:statistics:" in keys_of(redis.port), "a limit to be shared")
            shown = LOOPBACK.get(proxy.url + job["metrics_path"], headers=proxy.headers, timeout=300)
            assert "ctx_hooks_requests_total{" in shown.text
            assert LOOPBACK.get(proxy.url + job["metrics_path"], timeout=300).status_code == 401


def test_helm_values_rescue(litellm_alone, provider, tmp_path):
    values = yaml_file("docs/deploy/helm-values.yaml")
    (container,) = values["extraInitContainers"]
    *command, wheel = container["command"]
    assert wheel == f"https://files.example/{litellm_alone.package.wheel.name}"
    command.append(str(litellm_alone.package.wheel))
    litellm_alone.run(installed_to(command, tmp_path, IN_CONTAINER), tmp_path)
    variables = {name: value.replace(IN_CONTAINER, str(tmp_path)) for name, value in values["envVars"].items()}
    with started(litellm_alone.program("litellm"), values["proxy_config"], provider, **variables) as proxy:
        assert_rescued(proxy, provider)


def keys_of(port: int) -> str:
    return done("redis-cli", "-p", str(port), "--scan", cwd=ROOT)
