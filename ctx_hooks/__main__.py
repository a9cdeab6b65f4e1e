"""`python -m ctx_hooks` is the same as `ctx-hooks`."""

import sys

from ctx_hooks.cli import main

sys.exit(main())
