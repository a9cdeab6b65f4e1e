"""What the package imports is declared: LiteLLM with its `proxy` extra, and what that requires."""

import ast
import sys
from collections import defaultdict
from functools import cache
from importlib.metadata import distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROXY = "litellm[proxy]"

REQUIRED = {
    "click": ("litellm", "the command line"), "cryptography": (PROXY, "encrypts what is archived"),
    "fastapi": (PROXY, "the proxy's answers; the fake provider"), "jinja2": ("litellm", "the page of `ctx-hooks report`"),
    "httpx": ("litellm", "the demo and the fake provider ask over HTTP"),
    "litellm": ("ctx-hooks", "what this is a plugin for"),
    "numpy": ("soundfile", "arrays of term weights; `litellm[proxy]` requires soundfile, which requires numpy"),
    "orjson": (PROXY, "JSON of whole requests"),
    "packaging": ("litellm", "whether the LiteLLM that is installed is supported"), "pydantic": ("litellm", "settings"),
    "redis": ("rq", "errors of its client; `litellm[proxy]` requires rq, which requires redis"),
    "rich": (PROXY, "tables of the command line"), "starlette": (PROXY, "serves the live page"),
    "tiktoken": ("litellm", "local tokens"),
    "typing_extensions": ("litellm", "Self, for the type checker alone"), "uvicorn": (PROXY, "serves the fake provider"),
    "yaml": ("litellm", "proxy configurations"),
}  # fmt: skip
"""Each imported module: what requires its distribution, and what it is for."""
OPTIONAL = {"prometheus_client": "metrics; the extra `prometheus`"}


@cache
def trees():
    """Return the syntax tree of each module of the package."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "ctx_hooks").rglob("*.py")}


def imported():
    """Return the top-level names that any module of the package imports, wherever in it."""
    names = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names.add(str(node.module).split(".")[0])
    return names - set(sys.stdlib_module_names) - {"ctx_hooks"}


@cache
def requirements(distribution):
    """Return the names of what a distribution requires here; `name[extra]` adds those of the extra."""
    required = Requirement(distribution)
    found = (Requirement(r) for r in requires(required.name) or ())
    extras = ("", *required.extras)
    return {
        canonicalize_name(r.name) for r in found if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in extras)
    }


@cache
def distributions_by_module():
    """Return the distributions of each top-level name by their files: Python 3.10's own function knows but a few."""
    found = defaultdict(set)
    for distribution in distributions():
        name = canonicalize_name(distribution.metadata["Name"])
        for top in {line.split(",")[0].split("/")[0] for line in (distribution.read_text("RECORD") or "").splitlines()}:
            found[top.partition(".")[0]].add(name)
    return found


def test_what_is_imported_is_listed_here_with_its_reason_and_nothing_else_is():
    assert imported() == {*REQUIRED, *OPTIONAL}


def test_the_package_requires_litellm_with_its_proxy_extra_and_what_that_brings():
    declarations = map(Requirement, requires("ctx-hooks") or ())
    declared, *named = (d for d in declarations if d.marker is None)  # an extra stands behind a marker
    assert {d.name for d in named} == {"pyyaml", "tiktoken"}
    assert not any(d.specifier for d in named), "LiteLLM says which versions"
    assert (declared.name, declared.extras) == ("litellm", {"proxy"})
    assert not declared.specifier.contains("1.107.0")


@pytest.mark.parametrize("module", sorted(set(REQUIRED) - {"litellm"}))
def test_what_is_imported_is_required_by_what_is_said_to_bring_it(module):
    brought_by = REQUIRED[module][0]
    assert distributions_by_module()[module] & requirements(brought_by)
    assert brought_by in ("litellm", PROXY) or brought_by in requirements(PROXY)


@pytest.mark.parametrize("module", OPTIONAL)
def test_what_is_optional_is_imported_inside_a_function_and_is_declared(module):
    assert f'"{module}>=' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                assert module not in ast.unparse(node), path
