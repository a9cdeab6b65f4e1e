"""Recorded sessions: real ones where they lie beside the project, and otherwise small ones that were made for it."""

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parent
BESIDE = Path(os.environ.get("CTX_HOOKS_TRAJECTORIES") or TESTS.parents[1] / "shared" / "trajectories")
OWN = sorted((TESTS / "recorded").glob("*.jsonl"))
FILES = sorted(BESIDE.glob("*.jsonl")) or OWN
"""One conversation a line, as JSON: `format`, `system`, `tools` and `messages`."""
