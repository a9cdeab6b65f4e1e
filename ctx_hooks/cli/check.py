"""`ctx-hooks check FILE`: the mistakes of a proxy configuration, or its windows, its policies and its weak spots."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ctx_hooks.cli.configuration import Configuration, Listed, read_configuration
from ctx_hooks.cli.findings import Finding, print_findings, weak_spots
from ctx_hooks.cli.terminal import FAILED, as_json, console, counted, print_json, setting, table
from ctx_hooks.cli.windows import ask_servers, windows
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.policy.resolve import Resolved
from ctx_hooks.policy.settings import DEFAULT_POLICY

SOURCES = {"policy": "the policy", "model_info": "model_info", "model_map": "LiteLLM", "default": "nobody: assumed"}
"""The sources of a window."""
CALLERS = {"teams": "team_names", "keys": "key_names", "sessions": "session"}
"""Sections whose scopes apply to callers of a name; and the field of a caller that has the name."""
DEFAULTS = DEFAULT_POLICY.model_dump(mode="json")
ANY = Listed("", Deployment("", {}), {})
"""A deployment that no scope of a model names."""


@dataclass(frozen=True, slots=True)
class Row:
    """A field that a scope sets for `whom`: a model group, a caller such as `teams.research`, or "" for everybody."""

    whom: str
    field: str
    value: Any
    set_by: str
    is_default: bool


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
                found[whom, name, repr(value)] = Row(whom, name, value, origin, value == DEFAULTS[name])
    return list(found.values())


def _set(resolved: Resolved) -> dict[str, tuple[Any, str]]:
    values = resolved.policy.model_dump(mode="json")
    return {name: (values[name], origin) for name, origin in resolved.origins.items()}


def run(*, config: Path, probe: bool = False, write: bool = False, yes: bool = False) -> int:
    """Print the mistakes of a configuration, else its windows, policies and weak spots; return the exit code."""
    found = read_configuration(config)
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
    changed = {row.field for row in rows if not row.whom}
    differing = [row for row in rows if not row.is_default or (row.whom and row.field in changed)]
    if not differing:
        out.print("Every policy is the default.")
        return
    shown = table("policy of", "field", "value", "default", "set by")
    for row in differing:
        value, default = row.value, DEFAULTS[row.field]
        shown.add_row(row.whom or "everybody", row.field, setting(value, default), setting(default, value), row.set_by)
    out.print(shown)
    if any(row.field == "tool_results" and row.value["apply"] == "compressed" for row in differing):
        out.print("tool_results applies once a request is compressed, unless `apply: always` is set.", style="dim")
    if same := len(rows) - len(differing):
        out.print(f"Not listed: {counted(same, 'field')} with the value of the default.", style="dim")
