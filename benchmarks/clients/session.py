"""One session of a client: its folders, its process, and how it ended."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from client import Client
from installing import Installed
from model import CALLS, PROMPT, SAY_DONE, file_name

from ctx_hooks.testing.conversations import source_text

SESSION_SECONDS = 240
"""Five times what the slowest client takes on two cores, 45 seconds."""
FILE_CHARS = 16_000
"""About 4,000 tokens."""
PROGRAMS = Path(__file__).with_name("programs")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a client's process ended; `status` is None when its time was up."""

    status: int | None
    output: str


def prepare(folder: Path) -> Path:
    """Make the home and the working folder of a session below `folder`, and return the latter, with its files.

    What an earlier session left there is deleted: some clients go on with it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    work = folder / "work"
    (folder / "home").mkdir(parents=True)
    work.mkdir()
    for number in range(1, CALLS + 1):
        (work / file_name(number)).write_text(source_text(random.Random(number), FILE_CHARS), encoding="utf-8")
    return work


def run(client: Client, installed: Installed, folder: Path, values: Mapping[str, str]) -> Ended:
    """Run a client in a prepared folder; what it prints is kept there as `output`.

    Args:
        client: What to run.
        installed: Where its programs are.
        folder: What `prepare` made.
        values: `url`, `key` and `model` of its templates.

    """
    home, work = folder / "home", folder / "work"
    folders = {"home": home, "work": work, "programs": PROGRAMS, "installed": installed.packages}
    filled = {**values, "prompt": PROMPT, "end": SAY_DONE, **{name: str(path) for name, path in folders.items()}}
    for path, text in client.files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(Template(text).substitute(filled), encoding="utf-8")
    paths = [str(installed.programs), os.environ["PATH"]]
    environment = {"HOME": str(home), "PATH": os.pathsep.join(paths), "LANG": "C.UTF-8"}
    environment |= {name: Template(text).substitute(filled) for name, text in client.environment.items()}
    command = [Template(word).substitute(filled) for word in client.command]
    output = folder / "output"
    with output.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - a client of the list, on files made here
            command,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        status = _wait(process)
    return Ended(status, output.read_text(encoding="utf-8", errors="replace"))


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(SESSION_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end_group(process.pid)
        process.wait()


def _end_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return  # it left nothing behind
