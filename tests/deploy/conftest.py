"""The package built as for a release, and LiteLLM in an environment of its own, without the plugin, as in its image."""

import shutil
import sys
import tarfile
from collections.abc import Iterator
from importlib.metadata import requires
from pathlib import Path

import pytest
from environments import ROOT, Environment, Package, compiled_as_here, done
from uv import find_uv_bin

from ctx_hooks.testing import FakeProvider, ProviderSettings


@pytest.fixture(scope="session")
def package(tmp_path_factory) -> Package:
    """The source distribution of this tree, and the wheel that is built of it."""
    folder, unpacked = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("source")
    build = (sys.executable, "-m", "hatchling", "build", "-d", folder)
    done(*build, "-t", "sdist", cwd=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    done(*build, "-t", "wheel", cwd=source)
    (wheel,) = folder.glob("*.whl")
    built = tmp_path_factory.mktemp("checkout") / "docs" / "deploy"
    built.mkdir(parents=True)
    shutil.copy(wheel, built)
    return Package(folder, sdist, wheel, built.parents[1])


@pytest.fixture(scope="session")
def constraints(tmp_path_factory) -> Path:
    """The versions that these tests run with: another environment of the same is linked from uv's cache."""
    path = tmp_path_factory.mktemp("constraints") / "constraints.txt"
    path.write_text(done(find_uv_bin(), "pip", "freeze", "--python", sys.executable, "--exclude-editable", cwd=ROOT))
    return path


@pytest.fixture(scope="session")
def environment(package, constraints, tmp_path_factory) -> Environment:
    """What LiteLLM's image has: its proxy, Prometheus' client, pip; and no plugin, unless a test installs it."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    uv = find_uv_bin()
    done(uv, "venv", "--quiet", "--seed", "--python", sys.executable, folder, cwd=ROOT)
    declared = [requirement for requirement in requires("ctx-hooks") or () if "extra ==" not in requirement]
    wanted = (*declared, "prometheus_client")
    done(uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python", "-c", constraints, *wanted, cwd=ROOT)
    compiled_as_here(folder)
    return Environment(folder, package)


@pytest.fixture
def litellm_alone(environment) -> Environment:
    """The same without the plugin, whatever the test before this one has left."""
    done(find_uv_bin(), "pip", "uninstall", "--quiet", "--python", environment.program("python"), "ctx-hooks", cwd=ROOT)
    return environment


@pytest.fixture(scope="module")
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(ProviderSettings(window_tokens=6_000)) as running:
        yield running
