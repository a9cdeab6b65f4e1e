"""Installs a client below a cache folder, each in a folder of its own, and never into the project's environment."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from client import Client, path_name

INSTALL_SECONDS = 480
"""What takes longer is left out of the table."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A client on this machine: its version, the folder that its packages are in, and that of its programs."""

    version: str
    packages: Path
    programs: Path


def install(client: Client, cache: Path) -> Installed:
    """Install a client unless the cache holds it.

    Raises:
        subprocess.SubprocessError: It cannot be installed, or not in time.

    """
    # The packages tell the folder, so that clients of the same packages share it.
    folder = cache / path_name(" ".join(client.packages))
    folder.mkdir(parents=True, exist_ok=True)
    return _from_npm(client, folder) if client.registry == "npm" else _from_pip(client, folder)


def _from_npm(client: Client, folder: Path) -> Installed:
    manifest = folder / "node_modules" / client.packages[0] / "package.json"
    if not manifest.exists():
        _run("npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", *client.packages)
    version = json.loads(manifest.read_text(encoding="utf-8"))["version"]
    modules = folder / "node_modules"
    return Installed(version, modules, modules / ".bin")


def _from_pip(client: Client, folder: Path) -> Installed:
    python = folder / "bin" / "python"
    if not python.exists():
        _run(sys.executable, "-m", "venv", str(folder))
    name = client.packages[0].split("[")[0]
    ask = (str(python), "-c", f"from importlib.metadata import version; print(version({name!r}))")
    try:
        return Installed(_run(*ask), folder, python.parent)
    except subprocess.CalledProcessError:  # not installed yet
        _run(str(python), "-m", "pip", "install", "--quiet", *client.packages)
    return Installed(_run(*ask), folder, python.parent)


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)  # noqa: S603
    return done.stdout.strip()
