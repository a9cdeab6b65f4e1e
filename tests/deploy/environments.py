"""Virtual environments of the tests of this folder, and commands that are run in them."""

import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 300
"""For a build or an installation. From uv's cache it takes a few seconds, from the network a minute."""


@dataclass(frozen=True)
class Package:
    """What a release publishes, both in one folder; in a checkout, the wheel is in `docs/deploy`."""

    folder: Path
    sdist: Path
    wheel: Path
    checkout: Path


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and how commands in it find the package: in a folder, and nowhere else."""

    folder: Path
    package: Package

    def program(self, name: str) -> Path:
        return self.folder / "bin" / name

    def run(self, command: str, cwd: Path, **variables: str) -> str:
        """Run a line of shell with the environment active, and return what it prints; fails the test where it fails."""
        path = os.pathsep.join([str(self.folder / "bin"), os.environ["PATH"]])
        active = {"VIRTUAL_ENV": str(self.folder), "PATH": path, "PYTHONPATH": ""}
        pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.package.folder)}
        return done("sh", "-c", command, cwd=cwd, env={**active, **pip, **variables})


def compiled_as_here(folder: Path) -> None:
    """Copy what Python has compiled for these tests: uv installs the same sources, and those of LiteLLM take 11 s."""
    here, (there,) = Path(sysconfig.get_path("purelib")), folder.glob("lib/python*/site-packages")
    for compiled in here.rglob("__pycache__"):
        if (there / compiled.relative_to(here)).parent.is_dir():
            shutil.copytree(compiled, there / compiled.relative_to(here), dirs_exist_ok=True)


def done(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command and return what it prints; fails the test where it fails."""
    words, variables = list(map(str, command)), {**os.environ, **(env or {})}
    result = subprocess.run(
        words, check=False, cwd=cwd, env=variables, capture_output=True, text=True, timeout=TIMEOUT_SECONDS
    )
    assert result.returncode == 0, (words, result.stdout, result.stderr)
    return result.stdout
