"""`forked_python.py -u -c CODE`: Python, in a fork of the process that has imported LiteLLM; pytest's workers are such."""

import os
import signal
import sys
from pathlib import Path

from proxies import ForkedProcess

if __name__ == "__main__":
    asked = {"code": sys.argv[-1], "environment": dict(os.environ), "folder": str(Path.cwd())}
    process = ForkedProcess(asked, 0, 1, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which then ends its workers
    sys.exit(process.wait(None))
