"""Draw what commands print, as docs/appendix/cli.md shows them: each runs in a terminal of 80 columns.

python benchmarks/terminal.py docs
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from ctx_hooks.testing import agent_session

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 80
COMMANDS = {
    "check": ["check", "litellm_config.yaml"],
    "explain": ["explain", "request.json", "--model", "local", "--config", "litellm_config.yaml"],
}
WITHOUT_FONTS = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
"""Rich's own picture names fonts elsewhere: a page would fetch them."""


def main() -> None:
    """Write one picture a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    with tempfile.TemporaryDirectory() as work:
        Path(work, "litellm_config.yaml").write_bytes((ROOT / "litellm_config.yaml").read_bytes())
        Path(work, "request.json").write_text(json.dumps(agent_session("openai-chat", turns=60, result_chars=4_000)))
        for name, command in COMMANDS.items():
            drawn = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
            drawn.print(Text(f"$ ctx-hooks {' '.join(command)}"))
            drawn.print(Text.from_ansi(printed(command, work)))
            picture = drawn.export_svg(title="", code_format=WITHOUT_FONTS, unique_id=f"ctx-hooks-{name}")
            path = folder / f"cli_{name}.svg"
            path.write_text(picture)
            print(f"{path}: {len(picture) / 1_000:.0f} KB")


def printed(command: list[str], folder: str) -> str:
    """Return what a command prints in a terminal."""
    shown, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "ctx_hooks", *command]
    with subprocess.Popen(program, cwd=folder, env=environment, stdout=terminal, stderr=subprocess.DEVNULL):  # noqa: S603
        os.close(terminal)
        pieces = b""
        while piece := _read(shown):
            pieces += piece
    os.close(shown)
    return pieces.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # Linux says so when the other side of a terminal is closed
        return b""


if __name__ == "__main__":
    main()
