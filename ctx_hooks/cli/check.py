"""`ctx-hooks check FILE`: the mistakes of a proxy configuration, or its windows, its policies and its findings.

Findings of `check` and `doctor` have their words in `findings.yaml`.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import cache
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
from ctx_hooks.cli.configuration import PLUGIN, Configuration, Listed, read_configuration, suggestion, values_of
from ctx_hooks.cli.terminal import FAILED, as_json, console, counted, print_json, setting, table
from ctx_hooks.cli.windows import ask_servers, windows
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.litellm_compat.deployments import names_redis
from ctx_hooks.policy.loading import NAME
from ctx_hooks.policy.resolve import Resolved
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.tokens.budget import DEFAULT_WINDOW_TOKENS, SMALL_WINDOW_TOKENS, replaced_reserve

SOURCES = {"policy": "the policy", "model_info": "model_info", "model_map": "LiteLLM", "default": "nobody: assumed"}
"""The sources of a window."""
CALLERS = {"teams": "team_names", "keys": "key_names", "sessions": "session"}
"""Sections whose scopes apply to callers of a name; and the field of a caller that has the name."""
DEFAULTS = DEFAULT_POLICY.model_dump(mode="json")
ANY = Listed("", Deployment("", {}), {})
"""A deployment that no scope of a model names."""
Level = Literal["fails", "weak", "note", "ok"]
"""`fails`: requests are not treated as they should be. `weak`: they are, and could be better. `note`: good to know."""
STYLES: dict[Level, str] = {"fails": "bold red", "weak": "yellow", "note": "cyan", "ok": "green"}
LEVEL_CHARS = 7
OTHER_LISTS = ("success_callback", "failure_callback", "input_callback")
"""Lists for loggers: LiteLLM calls their instances after answers and errors, but not before a call."""
COMPRESSORS = ("compression_interception", "headroom")
"""Names, or parts of names, under which LiteLLM's `callbacks` and `guardrails` switch on another compressor."""
REDIS_SERVERS = ("REDIS_URL", "REDIS_HOST", "REDIS_CLUSTER_NODES", "REDIS_SENTINEL_NODES")
"""Variables by which LiteLLM finds a Redis; its others, such as REDIS_MAX_CONNECTIONS, name none."""
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


@dataclass(frozen=True, slots=True)
class Row:
    """A field that a scope sets for `whom`: a model group, a caller such as `teams.research`, or "" for everybody."""

    whom: str
    field: str
    value: Any
    set_by: str


def rows(config: Configuration) -> list[Row]:
    """Return the fields set for everybody, and those that each model group and named caller adds."""
    everybody = _set(config.resolved(ANY))
    said = [("", everybody), *((listed.group, _set(config.resolved(listed))) for listed in config.listed)]
    for section, field in CALLERS.items():
        for name in getattr(config.settings, section):
            caller = {field: name if field == "session" else (name,)}  # a pattern matches itself
            said.append((f"{section}.{name}", _set(config.resolved(ANY, **caller))))
    found: dict[tuple[str, str, str], Row] = {}  # deployments of one group may say the same, or not
    for whom, fields in said:
        for name, (value, origin) in sorted(fields.items()):
            if not whom or (value, origin) != everybody.get(name):
                found[whom, name, repr(value)] = Row(whom, name, value, origin)
    return list(found.values())


def _set(resolved: Resolved) -> dict[str, tuple[Any, str]]:
    values = resolved.policy.model_dump(mode="json")
    return {name: (values[name], origin) for name, origin in resolved.origins.items()}


def run(*, config: Path, probe: bool = False, write: bool = False, yes: bool = False) -> int:
    """Print the mistakes of a configuration, else its windows, policies and weak spots; return the exit code."""
    found = read_configuration(config, with_mistakes=True)
    findings = weak_spots(found)
    fails = any(finding.level == "fails" for finding in findings)
    if not as_json():
        _print(console(), config, found, findings, fails=fails)
    probed = ask_servers(config, found, write=write, yes=yes) if probe or write else None
    if as_json():
        document = {
            "mistakes": found.mistakes,
            "deployments": windows(found),
            "policies": [asdict(row) for row in rows(found)],
            "findings": [asdict(finding) for finding in findings],
        }
        print_json({**document, **({} if probed is None else {"probed": [asdict(row) for row in probed]})})
    return FAILED if found.mistakes or fails else 0


def _print(out: Console, path: Path, found: Configuration, findings: Sequence[Finding], *, fails: bool) -> None:
    for line in found.mistakes:
        out.print(line, soft_wrap=True)
    if found.mistakes:
        out.print(f"{counted(len(found.mistakes), 'mistake')} in {path}", style="bold red")
        return
    if not fails:
        out.print(f"{path}: no mistakes", style="bold green")
    shown = table("model group", "deployment", "window", "stated by", right=(2,))
    for row in windows(found):
        tokens, source = row["window_tokens"], SOURCES[row["window_source"]]
        window = ("", "each model") if tokens is None else (f"{tokens:,}", source)
        shown.add_row(row["model_group"], row["model"], *window)
    out.print("", shown if found.listed else "It lists no deployment.", "", sep="\n")
    _print_policies(out, rows(found))
    if findings:
        out.print(f"\nWhat {'fails, or ' * fails}could be better", style="bold")
        print_findings(out, findings)


def _print_policies(out: Console, rows: Sequence[Row]) -> None:
    rows = [row for row in rows if row.whom or row.value != DEFAULTS[row.field]]
    if not rows:
        out.print("Every policy is the default.")
        return
    shown = table("policy of", "field", "value", "default", "set by")
    for row in rows:
        value, default = row.value, DEFAULTS[row.field]
        shown.add_row(row.whom or "everybody", row.field, setting(value, default), setting(default, value), row.set_by)
    out.print(shown)
    if any(row.field == "tool_results" and row.value["apply"] == "compressed" for row in rows):
        out.print("tool_results applies once a request is compressed, unless `apply: always` is set.", style="dim")


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
    has_redis = names_redis(config.raw) or any(map(os.environ.get, REDIS_SERVERS))
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
        named, misplaced = _named([listed]), {"litellm_params.max_input_tokens": listed.params.get("max_input_tokens")}
        misplaced["model_info.max_tokens"] = None if "max_input_tokens" in info else info.get("max_tokens")
        for field, tokens in misplaced.items():
            if tokens is not None:
                yield finding("window_misplaced", deployment=named, field=field, tokens=tokens)
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
    """Yield settings of the Router and the proxy that the plugin suffers from, and a missing folder of events."""
    router, events = config.section("router_settings"), config.settings.events
    if events is not None and not os.path.isdir(events.path):  # noqa: PTH112 - where it may not be looked for, `Path.is_dir` raises
        yield finding("events_folder", path=events.path)
    if router.get("enable_pre_call_checks") is True:
        yield finding("pre_call_checks")
    if config.section("general_settings").get("cancel_on_disconnect") is not True:
        yield finding("cancel_on_disconnect")


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
