"""`ctx-hooks doctor`: whether the plugin works in this installation, and what in a configuration could be better."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, get_args

from packaging.requirements import Requirement
from redis.exceptions import RedisError

from ctx_hooks.cli.configuration import Configuration, read_configuration
from ctx_hooks.cli.findings import Finding, finding, print_findings
from ctx_hooks.cli.redis_client import redis_client
from ctx_hooks.cli.terminal import FAILED, CommandError, as_json, console, counted, print_json, working
from ctx_hooks.cli.weak_spots import weak_spots
from ctx_hooks.litellm_compat.registry import KEYS, NAMES, missing
from ctx_hooks.policy.resolve import KILL_SWITCH, switched_off
from ctx_hooks.store.shared_store import READ
from ctx_hooks.tokens.counter import VocabularyName, encoding

PACKAGE = "ctx-hooks"
WAIT_SECONDS = 5.0
"""A Redis that takes longer is of no use to a request."""


def run(*, config: Path | None) -> int:
    """Print the findings of each section as soon as they are made; return the exit code."""
    read = read_configuration(config) if config else None
    out = console()
    told: dict[str, list[Finding]] = {}
    for name, look in _sections(read):
        with working(name):
            told[name] = list(look())
        if not as_json():
            out.print(f"\n{name}", style="bold")
            print_findings(out, told[name])
    failing, weak = ([f for found in told.values() for f in found if f.level == level] for level in ("fails", "weak"))
    if as_json():
        findings = [{"section": name, **asdict(f)} for name, found in told.items() for f in found]
        print_json({"works": not failing, "findings": findings})
    elif failing:
        out.print(f"\n{counted(len(failing), 'finding')} of the level `fails`.", style="bold red")
    else:
        out.print("\nNo check fails." if weak else "\nAll checks pass.", style="bold green")
    return FAILED if failing else 0


def _sections(config: Configuration | None) -> Iterator[tuple[str, Callable[[], Iterable[Finding]]]]:
    yield "The installation", _installation
    yield "Redis", lambda: [_redis(config)]
    if config is not None:
        yield "The configuration", lambda: _configuration(config)


def _installation() -> Iterator[Finding]:
    yield versions_finding(version("litellm"))
    if switched_off():
        yield finding("switched_off", variable=KILL_SWITCH)
    yield _vocabularies()
    lacking = [f"{name.fault}: {name.without}" for name in NAMES if name.fault]
    lacking += [f"this LiteLLM has no {name}: {KEYS[name]}" for name in sorted(missing(KEYS))]
    yield from (finding("seam_missing", lacking=text) for text in lacking)
    if not lacking:
        yield finding("seam", names=len(NAMES) + len(KEYS))


def versions_finding(found: str) -> Finding:
    """Return whether a version of LiteLLM is one that the package asks for."""
    here = f"Python {platform.python_version()}"
    try:
        ours = f"ctx-hooks {version(PACKAGE)}"
        (wanted,) = (r for r in map(Requirement, requires(PACKAGE) or ()) if r.name == "litellm" and r.marker is None)
    except PackageNotFoundError:
        return finding("versions_folder", versions=f"LiteLLM {found}, {here}")
    versions = f"LiteLLM {found}, {ours}, {here}"
    if found in wanted.specifier:
        return finding("versions", versions=versions)
    return finding("versions_unsupported", versions=versions, specifier=wanted.specifier, wanted=wanted)


def _vocabularies() -> Finding:
    begun = time.perf_counter()
    for name in get_args(VocabularyName):
        try:
            encoding(name).encode_ordinary("")
        except OSError as error:
            return finding("vocabulary_missing", name=name, error=error)
    milliseconds = (time.perf_counter() - begun) * 1_000
    return finding("vocabularies", names=" and ".join(get_args(VocabularyName)), milliseconds=f"{milliseconds:,.0f}")


def _redis(config: Configuration | None) -> Finding:
    """Return whether the Redis that the workers share can be reached, and runs scripts."""
    try:
        client = redis_client(config)
    except CommandError as error:
        return finding("redis_fails", error=error)
    if client is None:
        return finding("redis_missing")
    try:
        asyncio.run(asyncio.wait_for(_read(client), WAIT_SECONDS))
    except (OSError, RedisError, TimeoutError, asyncio.TimeoutError) as error:
        reason = str(error) or f"no answer within {WAIT_SECONDS:.0f} seconds"
        return finding("redis_fails", error=f"Redis cannot be used: {reason}")
    return finding("redis")


async def _read(client: Any) -> None:
    """Run the script by which values are read, which the server must allow."""
    try:
        await client.eval(READ, 1, "ctx_hooks:doctor", 0, "")
    finally:
        await client.aclose()


def _configuration(config: Configuration) -> Iterator[Finding]:
    yield from (finding("mistake", mistake=line) for line in config.mistakes)
    found = weak_spots(config)
    yield from found
    if not found and not config.mistakes:
        yield finding("configuration", deployments=counted(len(config.listed), "deployment"))
