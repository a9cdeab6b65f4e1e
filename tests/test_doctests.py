"""Every example in a docstring of the package runs and gives what it says."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import ctx_hooks

PACKAGE = Path(ctx_hooks.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
"""Those that hold examples; no other is imported for them."""


@pytest.mark.parametrize("module", MODULES)
def test_examples_print_what_they_say(module):
    failed, attempted = doctest.testmod(import_module(module))
    assert attempted
    assert not failed
