"""What the recipes of docs/install.md and docs/deploy say, read from the files themselves."""

import argparse
import json
import re
import shlex
from pathlib import Path
from typing import Any

import yaml
from environments import ROOT

FOLDER = ROOT / "docs" / "deploy"
INSTALL = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")


def commands(heading: str) -> list[str]:
    """Return the lines of the first shell block under a heading of docs/install.md, without comments."""
    section = INSTALL.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block is not None, heading
    return [line for line in re.sub(r"\\\n\s*", "", re.sub(r"\s+# .*", "", block[1])).splitlines() if line]


def dockerfile() -> list[tuple[str, str]]:
    """Return each instruction of the Dockerfile with its arguments, without comments and without a RUN's mounts."""
    lines = (line for line in (FOLDER / "Dockerfile").read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    joined = "\n".join(lines).replace("\\\n", " ")
    instructions = (line.split(None, 1) for line in joined.splitlines() if line)
    return [(name, re.sub(r"^(--mount=\S+\s+)*", "", arguments)) for name, arguments in instructions]


def container_of(docker_run: str) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return a `docker run`'s mounts by their path in the container, its variables, and the arguments behind the image."""
    parser = argparse.ArgumentParser()
    for option in ("-p", "-e", "-v"):
        parser.add_argument(option, action="append", default=[])
    parser.add_argument("image")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    command = shlex.split(docker_run)
    assert command[:2] == ["docker", "run"]
    given = parser.parse_args(command[2:])
    mounts = dict(reversed(volume.removesuffix(":ro").split(":")) for volume in given.v)
    return mounts, dict(variable.split("=") for variable in given.e if "=" in variable), given.arguments


def yaml_file(path: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    return loaded


def arguments_of_image() -> list[str]:
    """Return what the Dockerfile's CMD hands to LiteLLM's entry point."""
    (command,) = (arguments for name, arguments in dockerfile() if name == "CMD")
    found: list[str] = json.loads(command)
    return found


def installed_to(command: list[str], folder: Path, target: str) -> str:
    """Return an installing command as a line of shell, with `folder` in place of the container's `target`."""
    assert target in command
    return shlex.join(str(folder) if word == target else word for word in command)
