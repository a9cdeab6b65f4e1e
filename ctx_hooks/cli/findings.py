"""The findings of `check` and `doctor`: each with how bad it is and what to do about it, in the words of `findings.yaml`."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from string import Template
from typing import Any, Literal, get_args

import yaml
from rich.console import Console
from rich.styled import Styled
from rich.table import Table
from rich.text import Text

from ctx_hooks.attempts.target import window_at
from ctx_hooks.cli.configuration import PLUGIN, Configuration, Listed, suggestion, values_of
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.deployments import names_redis
from ctx_hooks.policy.loading import NAME
from ctx_hooks.tokens.budget import DEFAULT_WINDOW_TOKENS, SMALL_WINDOW_TOKENS, replaced_reserve

Level = Literal["fails", "weak", "note", "ok"]
"""`fails`: requests are not treated as they should be. `weak`: they are, and could be better. `note`: good to know."""
STYLES: dict[Level, str] = {"fails": "bold red", "weak": "yellow", "note": "cyan", "ok": "green"}
LEVEL_CHARS = 7
OTHER_LISTS = ("success_callback", "failure_callback", "input_callback")
"""Lists for loggers: LiteLLM calls their instances after answers and errors, but not before a call."""
COMPRESSORS = ("compression_interception", "headroom")
"""Names, or parts of names, under which LiteLLM's `callbacks` and `guardrails` switch on another compressor."""
MOST_NAMED = 3
"""Deployments that a finding names; of a hundred alike, three and the number say enough."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding: its name for programs (`window_unknown`); how bad it is; the finding in words; the advice, or ""."""

    name: str
    level: Level
    text: str
    advice: str = ""


@cache
def _words() -> dict[str, dict[str, str]]:
    words: dict[str, dict[str, str]] = yaml.safe_load(Path(__file__).with_name("findings.yaml").read_text(encoding="utf-8"))
    return words


def finding(key: str, **values: object) -> Finding:
    """Return a finding by its key in `findings.yaml`, with the values for the places in its words."""
    words = _words()[key]
    text, advice = (Template(words.get(part, "")).substitute(values) for part in ("text", "advice"))
    return Finding(words.get("name", key), words["level"], text, advice)  # type: ignore[arg-type]  # a level each


def print_findings(out: Console, findings: Iterable[Finding]) -> None:
    """Print findings, each with its level in front and its advice below."""
    grid = Table.grid(padding=(0, 0))
    grid.add_column(width=LEVEL_CHARS)
    grid.add_column(overflow="fold")
    for finding in findings:
        grid.add_row(Text(finding.level, style=STYLES[finding.level]), finding.text)
        if finding.advice:
            grid.add_row("", Styled(finding.advice, "dim"))
    out.print(grid)


def weak_spots(config: Configuration) -> tuple[Finding, ...]:
    """Return the findings, the worst first."""
    searches = (_callbacks, _names, _addons, _windows, _router, _fallbacks)
    found = (spot for search in searches for spot in search(config))
    return tuple(sorted(found, key=lambda spot: get_args(Level).index(spot.level)))


def _callbacks(config: Configuration) -> Iterator[Finding]:
    """Yield what is wrong with the plugin's registration, and with callbacks beside it."""
    settings = config.section("litellm_settings")
    callbacks, others = _list(settings.get("callbacks")), {name: _list(settings.get(name)) for name in OTHER_LISTS}
    if PLUGIN not in callbacks:
        misplaced = [name for name, listed in others.items() if PLUGIN in listed]
        wrong = [name for name in callbacks if str(name).split(".")[0] == "ctx_hooks"]
        reason = "ctx_hooks is not in litellm_settings.callbacks: no request is treated"
        if misplaced:
            reason = f"in litellm_settings.{misplaced[0]} ctx_hooks has no effect: list it under litellm_settings.callbacks"
        elif wrong:
            reason = f"litellm_settings.callbacks names {wrong[0]}, not {PLUGIN}"
        kept = [name for name in callbacks if isinstance(name, str) and name not in wrong]
        yield finding("not_registered", reason=reason, callbacks=", ".join(f'"{name}"' for name in (*kept, PLUGIN)))
    everywhere = [*callbacks, *_list(settings.get("service_callback")), *chain.from_iterable(others.values())]
    if any(str(name).startswith("prometheus") for name in everywhere) and find_spec("prometheus_client") is None:
        yield finding("metrics_client")
    guards = [mapping_or_empty(guard).get("litellm_params") for guard in _list(config.raw.get("guardrails"))]
    for name in map(str, (*callbacks, *(mapping_or_empty(guard).get("guardrail") for guard in guards))):
        if any(other in name for other in COMPRESSORS):
            yield finding("other_compressor", name=name)


def _names(config: Configuration) -> Iterator[Finding]:
    """Yield misspelt keys, and policies of groups that no client can request; groups in LiteLLM's database are not known."""
    for path, value in values_of(config.raw):
        if isinstance(value, Mapping) and path.endswith((".metadata", ".model_info")):
            for name in value:
                if name != NAME and suggestion(name, [NAME]):
                    yield finding("misspelt", path=f"{path}.{name}", name=NAME)
    aliases = mapping_or_empty(config.section("router_settings").get("model_group_alias"))
    groups = [*(entry.group for entry in config.listed), *map(str, aliases)]
    for pattern in config.settings.models if config.lists_every_group else ():
        if not any(fnmatchcase(group, pattern) or fnmatchcase(pattern, group) for group in groups):
            yield finding("unknown_group", pattern=pattern, suggestion=suggestion(pattern, groups))


def _addons(config: Configuration) -> Iterator[Finding]:
    """Yield each summary whose model, and each archive whose Redis, the proxy does not have."""
    has_redis = names_redis(config.raw) or any(name.startswith("REDIS_") for name in os.environ)
    for path, value in values_of(config.raw):
        settings, name = mapping_or_empty(value), path.rsplit(".", 1)[-1]
        group = settings.get("model")
        if name == "summary" and config.lists_every_group and isinstance(group, str) and not config.group_of(group):
            known = suggestion(group, [entry.group for entry in config.listed])
            yield finding("summary_model", path=path, group=group, suggestion=known)
        if name == "archive" and settings.get("backend") == "redis" and not has_redis:
            yield finding("archive_redis", path=path)


def _windows(config: Configuration) -> Iterator[Finding]:
    """Yield unknown, small and misplaced windows, and reserves that a window replaces."""
    unknown: list[Listed] = []
    for listed in config.listed:
        resolved, info = config.resolved(listed), listed.deployment.model_info
        misplaced = partial(finding, "window_misplaced", deployment=(named := _named([listed])))
        if "max_input_tokens" in listed.params:
            yield misplaced(field="litellm_params.max_input_tokens", tokens=listed.params["max_input_tokens"])
        elif "max_tokens" in info and "max_input_tokens" not in info:
            yield misplaced(field="model_info.max_tokens", tokens=info["max_tokens"])
        window = window_at(listed.deployment, policy := resolved.policy)
        if "reserve" in resolved.origins and (replaced := replaced_reserve(window, policy)):
            yield finding("reserve_replaced", deployment=named, replaced=replaced)
        if window.source == "default":
            unknown += [] if "*" in listed.deployment.model else [listed]
        elif window.tokens < SMALL_WINDOW_TOKENS and policy.block_below_tokens != 0:
            name = "window_blocked" if window.tokens < (policy.block_below_tokens or 0) else "window_small"
            yield finding(name, deployment=named, tokens=f"{window.tokens:,}", source=window.source)
    if unknown:
        yield finding("window_unknown", deployments=_named(unknown), tokens=f"{DEFAULT_WINDOW_TOKENS:,}")


def _router(config: Configuration) -> Iterator[Finding]:
    """Yield settings of the Router and the proxy that send a request in vain, and a missing folder of events."""
    router, events = config.section("router_settings"), config.settings.events
    if events is not None and not os.path.isdir(events.path):  # noqa: PTH112 - where it may not be looked for, `Path.is_dir` raises
        yield finding("events_folder", path=events.path)
    if router.get("enable_pre_call_checks") is True:
        yield finding("pre_call_checks")
    if config.section("general_settings").get("cancel_on_disconnect") is not True:
        yield finding("cancel_on_disconnect")
    attempts = 1 + max((config.resolved(listed).policy.rescue_attempts for listed in config.listed), default=3)
    by_group = mapping_or_empty(router.get("model_group_retry_policy"))
    policies = {f"{group} of model_group_retry_policy": policy for group, policy in by_group.items()}
    for name, policy in {"retry_policy": router.get("retry_policy"), **policies}.items():
        again = mapping_or_empty(policy).get("BadRequestErrorRetries")
        if isinstance(again, int) and again > 0:
            yield finding("bad_request_retries", name=name, retries=again, times=(1 + again) * attempts)


def _fallbacks(config: Configuration) -> Iterator[Finding]:
    """Yield for each group with fallbacks which comes first for a request that is too long for it."""
    for listed in {entry.group: entry for entry in reversed(config.listed)}.values():
        policy, groups = config.resolved(listed).policy, config.fallbacks_of(listed.group)
        if groups and policy.mode != "off":
            name = "fallbacks_first" if policy.fallbacks == "first" else "fallbacks_last"
            yield finding(name, group=listed.group, fallbacks=", ".join(groups))


def _named(listed: Sequence[Listed]) -> str:
    names = [f"{entry.group} ({entry.deployment.model})" for entry in listed[:MOST_NAMED]]
    more = len(listed) - MOST_NAMED
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _list(value: Any) -> list[Any]:
    """Return a list, which LiteLLM takes as one name too."""
    return [value] if isinstance(value, str) else value if isinstance(value, list) else []
