"""What is installed: versions, vocabularies, and the names of LiteLLM that the plugin needs."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import get_args

from packaging.requirements import Requirement

from ctx_hooks.cli.findings import Finding
from ctx_hooks.litellm_compat.private_names import missing
from ctx_hooks.litellm_compat.registry import KEYS, NAMES
from ctx_hooks.policy.resolve import KILL_SWITCH, switched_off
from ctx_hooks.tokens.vocabulary import VocabularyName, encoding

PACKAGE = "ctx-hooks"


def installation_findings() -> Iterator[Finding]:
    """Yield what is found of the installation."""
    yield versions_finding(version("litellm"))
    if switched_off():
        yield Finding(
            "switched_off",
            "fails",
            f"{KILL_SWITCH} is set: the plugin is off, and every request passes as without it",
            f"Remove {KILL_SWITCH} from the proxy's environment.",
        )
    yield from _vocabularies()
    lacking = [f"{name.fault}: {name.without}" for name in NAMES if name.fault]
    lacking += [f"this LiteLLM has no {key.name}: {key.without}" for key in missing(KEYS)]
    for text in lacking:
        yield Finding("seam", "weak", text, "Upgrade LiteLLM; docs/versions.md names what each version has.")
    if not lacking:
        yield Finding("seam", "ok", f"LiteLLM has all {len(NAMES) + len(KEYS)} private names that the plugin uses")


def versions_finding(found: str) -> Finding:
    """Return whether a version of LiteLLM is one that the package asks for."""
    try:
        ours = f"ctx-hooks {version(PACKAGE)}"
        (wanted,) = (r for r in map(Requirement, requires(PACKAGE) or ()) if r.name == "litellm" and r.marker is None)
    except PackageNotFoundError:
        text = f"LiteLLM {found}, Python {platform.python_version()}; ctx_hooks is a folder here, not an installed package"
        return Finding("versions", "note", text, "The trial below says whether it works with this LiteLLM.")
    text = f"LiteLLM {found}, {ours}, Python {platform.python_version()}"
    if found in wanted.specifier:
        return Finding("versions", "ok", text)
    advice = f"Install one that is: pip install '{wanted}'"
    return Finding("versions", "fails", f"{text}: this LiteLLM is not supported ({wanted.specifier})", advice)


def _vocabularies() -> Iterator[Finding]:
    begun = time.perf_counter()
    for name in get_args(VocabularyName):
        try:
            encoding(name).encode_ordinary("")
        except OSError as error:
            yield Finding(
                "vocabularies",
                "fails",
                f"The vocabulary {name} is not there and cannot be had: {error}",
                "Reinstall litellm, which brings it, or let TIKTOKEN_CACHE_DIR name a folder that has it.",
            )
            return
    milliseconds = (time.perf_counter() - begun) * 1_000
    names = " and ".join(get_args(VocabularyName))
    yield Finding("vocabularies", "ok", f"{names} load without a network, in {milliseconds:,.0f} ms")
