"""What a release publishes: the source distribution and the wheel hold what they should and nothing else."""

import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from environments import ROOT

pytestmark = pytest.mark.deploy

LEFT_OUT = {"__pycache__", ".hypothesis", ".pytest_cache", "node_modules"}


def files_below(*names: str) -> set[str]:
    """Return the files of these files and folders of the tree, without what running it leaves."""
    found = [path for name in names for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))]
    return {p.relative_to(ROOT).as_posix() for p in found if p.is_file() and not LEFT_OUT & set(p.parts)}


@pytest.fixture(scope="module")
def in_sdist(package) -> set[str]:
    with tarfile.open(package.sdist) as archive:
        return {PurePosixPath(*Path(member.name).parts[1:]).as_posix() for member in archive if member.isfile()}


@pytest.fixture(scope="module")
def in_wheel(package) -> set[str]:
    with zipfile.ZipFile(package.wheel) as archive:
        return set(archive.namelist())


def test_source_distribution_has_package_documentation_and_tests(in_sdist):
    wanted = files_below("ctx_hooks", "docs", "tests", "litellm_config.yaml", "README.md", "CHANGELOG.md", "LICENSE")
    added_by_the_builder = {"PKG-INFO", ".gitignore", "pyproject.toml"}
    assert in_sdist == wanted | added_by_the_builder


def test_wheel_has_package_and_demo_configuration(in_wheel):
    metadata = {name for name in in_wheel if ".dist-info/" in name}
    assert in_wheel - metadata == files_below("ctx_hooks") | {"ctx_hooks/cli/litellm_config.yaml"}
    names = {PurePosixPath(name).name for name in metadata}
    assert names == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE"}
    assert "ctx_hooks/py.typed" in in_wheel
