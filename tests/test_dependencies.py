"""What the package imports is declared: LiteLLM with its `proxy` extra, and what that requires."""

import ast
import re
import sys
from importlib.metadata import packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = {"prometheus_client"}
"""Imported inside functions only, and declared as an extra."""


def imported(nodes):
    """Return the top-level names that are imported, without the standard library's and the package's own."""
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - {"ctx_hooks"}


def required_by(requirement, seen):
    """Add the names of a distribution and of all that it requires here, by its extras as well."""
    for line in requires(requirement.name) or ():
        found = Requirement(line)
        extras = ("", *requirement.extras)
        key = (canonicalize_name(found.name), *sorted(found.extras))
        if key not in seen and (found.marker is None or any(found.marker.evaluate({"extra": extra}) for extra in extras)):
            seen.add(key)
            required_by(found, seen)
    return {name for name, *_ in seen}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows but a few packages of distributions")
def test_imported_packages_are_required():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "ctx_hooks").rglob("*.py")]
    assert not OPTIONAL & {name for tree in trees for name in imported(tree.body)}
    names = {name for tree in trees for name in imported(list(ast.walk(tree)))}
    required, brings = required_by(Requirement("ctx-hooks"), set()), packages_distributions()
    assert {name for name in names if not required & set(map(canonicalize_name, brings[name]))} == OPTIONAL
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(f'"{name}>=', project) for name in OPTIONAL)


def test_package_requires_litellm_with_proxy_extra():
    declarations = map(Requirement, requires("ctx-hooks") or ())
    declared, *named = (d for d in declarations if d.marker is None)  # an extra stands behind a marker
    assert {d.name for d in named} == {"pyyaml", "tiktoken"}
    assert not any(d.specifier for d in named), "LiteLLM says which versions"
    assert (declared.name, declared.extras) == ("litellm", {"proxy"})
    assert not declared.specifier.contains("1.107.0")
