"""What is installed: versions, vocabularies, and the names of LiteLLM that the plugin needs."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import get_args

from packaging.requirements import Requirement

from ctx_hooks.cli.findings import Finding, finding
from ctx_hooks.litellm_compat.private_names import missing
from ctx_hooks.litellm_compat.registry import KEYS, NAMES
from ctx_hooks.policy.resolve import KILL_SWITCH, switched_off
from ctx_hooks.tokens.vocabulary import VocabularyName, encoding

PACKAGE = "ctx-hooks"


def installation_findings() -> Iterator[Finding]:
    """Yield what is found of the installation."""
    yield versions_finding(version("litellm"))
    if switched_off():
        yield finding("switched_off", variable=KILL_SWITCH)
    yield _vocabularies()
    lacking = [f"{name.fault}: {name.without}" for name in NAMES if name.fault]
    lacking += [f"this LiteLLM has no {key.name}: {key.without}" for key in missing(KEYS)]
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
