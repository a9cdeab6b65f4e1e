"""Reads histories and replays them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ctx_hooks.cli.replay.reading import Reading, files_of
from ctx_hooks.cli.replay.replaying import Replay
from ctx_hooks.cli.replay.ways import Deployments, ways_of
from ctx_hooks.cli.terminal import console, printable


def replayed(
    names: Sequence[str], policies: Sequence[str], config: Mapping[str, Any], model: str, window_tokens: int | None
) -> tuple[Reading, Replay]:
    """Return what was read, and what came of it.

    Args:
        names: files, folders and patterns.
        policies: names of policies, or their fields in YAML.
        config: a proxy's configuration, empty for none.
        model: the model or group to take for all requests; "" for the recorded ones.
        window_tokens: the window to take for all; None for each model's own.

    Raises:
        CommandError: a file is not there, or a policy has mistakes.
    """
    reading = Reading()
    replay = Replay(ways_of(policies, config), Deployments(config, model, window_tokens))
    with _opening() as opened:
        for path in files_of(names):
            for found in reading.of(path, opened):
                replay.add(found)
    replay.end()
    return reading, replay


@contextmanager
def _opening() -> Iterator[Callable[[Path], AbstractContextManager[BinaryIO]]]:
    """Give what opens a file; on a terminal it shows on stderr how much of that is read."""
    if not sys.stderr.isatty():
        yield lambda path: path.open("rb")
        return
    from rich.markup import escape  # noqa: PLC0415
    from rich.progress import Progress  # noqa: PLC0415 - slow to load, and for a terminal alone

    with Progress(console=console(stderr=True), transient=True) as progress:
        task = progress.add_task("")

        def opened(path: Path) -> AbstractContextManager[BinaryIO]:
            progress.reset(task, description=escape(printable(path.name)), total=path.stat().st_size)
            return progress.wrap_file(path.open("rb"), task_id=task)

        yield opened
