"""How many small faults in a room of the package the room's own tests find; for a hand, not for CI.

    python benchmarks/mutants.py compaction --sample 60

A mutant is the room with one fault: another comparison, a number one larger, `and` for `or`, a condition negated, nothing
returned, a statement left out. Each runs in a fork, which reads the package anew, against the tests of the room, those first
whose names are most like the module's. A mutant is killed by a test that fails or that takes ten seconds of processor time;
it survives all tests, or as many as run in `--seconds`. The survivors are printed with their line: some are equivalent.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import os
import random
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ONE_TEST_SECONDS = 10
USED_BY_TESTS = (
    "fastapi",
    "hypothesis",
    "litellm.proxy.proxy_server",
    "numpy",
    "prometheus_client",
    "pytest_asyncio.plugin",
    "redis.asyncio",
    "rich.console",
    "uvicorn",
    "xdist.plugin",
)
"""What takes longest to load, and knows nothing of the package."""
OTHER_COMPARISON = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OTHER_OPERATION = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.And: ast.Or, ast.Or: ast.And}


def faults(tree: ast.AST) -> Iterator[tuple[ast.AST, Callable[[], None]]]:
    """Yield each place of a module that can be made wrong, and what makes it so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER_COMPARISON:
            yield node, lambda node=node: node.ops.__setitem__(0, OTHER_COMPARISON[type(node.ops[0])]())
        elif isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in OTHER_OPERATION:
            yield node, lambda node=node: setattr(node, "op", OTHER_OPERATION[type(node.op)]())
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int):
            other = (not node.value) if isinstance(node.value, bool) else node.value + 1
            yield node, lambda node=node, other=other: setattr(node, "value", other)
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)) and not _is_for_types(node.test):
            negated = ast.UnaryOp(ast.Not(), node.test)
            yield node, lambda node=node, negated=negated: setattr(node, "test", negated)
        elif isinstance(node, ast.Return) and not (node.value is None or _is_none(node.value)):
            yield node, lambda node=node: setattr(node, "value", ast.Constant(None))
        for statements in (getattr(node, name, None) for name in ("body", "orelse")):
            for n, statement in enumerate(statements if isinstance(statements, list) else ()):
                called = isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Await))
                if called or isinstance(statement, (ast.AugAssign, ast.Continue, ast.Break, ast.Raise)):
                    yield statement, lambda statements=statements, n=n: statements.__setitem__(n, ast.Pass())


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def tests_of(room: str, module: Path, left_out: list[str]) -> list[str]:
    """Return the test files of a room, those first whose names share words with the module's."""
    words = set(re.findall("[a-z]+", module.stem))
    found = [path for path in (ROOT / "tests" / room).rglob("test_*.py") if path.stem not in left_out]

    def rank(path: Path) -> tuple[int, int]:
        return -len(words & set(re.findall("[a-z]+", path.stem))), path.stat().st_size

    return [str(path) for path in sorted(found, key=rank)]


class TimeOfATest:
    """Ends the process as killed where one test takes too long, and as survived where all together do."""

    def __init__(self, seconds: float) -> None:
        self._most_seconds = seconds
        signal.signal(signal.SIGPROF, lambda *_: os._exit(1))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:  # noqa: ARG002 - pytest's signature
        """Measure one test."""
        signal.setitimer(signal.ITIMER_PROF, ONE_TEST_SECONDS)
        result = yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        if sum(os.times()[:2]) > self._most_seconds:
            os._exit(0)
        return result


def survives(path: Path, number: int, tests: list[str], seconds: float) -> bool:
    """Run the tests against one mutant, in a fork that has read nothing of the package yet."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    resource.setrlimit(
        resource.RLIMIT_CPU, (int(seconds) + ONE_TEST_SECONDS, resource.RLIM_INFINITY)
    )  # it may hang at import
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    list(faults(tree))[number][1]()
    mutant = compile(ast.fix_missing_locations(tree), str(path), "exec")
    read = SourceFileLoader.get_code
    SourceFileLoader.get_code = lambda self, name: mutant if self.path == str(path) else read(self, name)
    options = ["-n", "0", "-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    code = pytest.main([*options, *tests], plugins=[TimeOfATest(seconds)])
    os._exit(int(code))


def main() -> None:
    """Print the survivors of a sample as they are found, and the share that was killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room")
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--first", type=int, default=0, help="leave out so many of the sample, which an earlier run had")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="processor time for each mutant")
    parser.add_argument("--without", nargs="*", default=[], help="test files to leave out, by name: those that measure time")
    asked = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    os.chdir(ROOT)
    for name in USED_BY_TESTS:
        importlib.import_module(name)
    places = []
    for path in sorted((ROOT / "ctx_hooks" / asked.room).rglob("*.py")):
        found = faults(ast.parse(path.read_text(encoding="utf-8")))
        places += [(path, number, node) for number, (node, _) in enumerate(found)]
    chosen = random.Random(asked.seed).sample(places, min(asked.sample, len(places)))[asked.first :]
    killed = 0
    for done, (path, number, node) in enumerate(chosen, 1):
        if survives(path, number, tests_of(asked.room, path, asked.without), asked.seconds):
            line = f"{path.relative_to(ROOT)}:{node.lineno}"
            print(f"survives: {line} {type(node).__name__}: {ast.unparse(node).splitlines()[0][:90]}", flush=True)
        else:
            killed += 1
        print(f"{killed} of {done} killed, of {len(places)} places", end="\r" if done < len(chosen) else "\n", flush=True)


if __name__ == "__main__":
    main()
