"""What in a proxy configuration keeps the plugin from its work, or makes it work worse than it could; and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from itertools import groupby
from os import environ
from os.path import exists, isdir
from pathlib import Path
from typing import Any

from ctx_hooks.cli.configuration import Configuration, Listed, window_of_deployment
from ctx_hooks.cli.findings import Finding
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.registration import OTHER_LISTS, no_effect
from ctx_hooks.policy.loading import NAME
from ctx_hooks.policy.scopes import resembling, suggestion
from ctx_hooks.tokens.window import DEFAULT_WINDOW_TOKENS

CALLBACK = "ctx_hooks.proxy_handler_instance"
COMPRESSORS = ("compression_interception", "headroom")
"""Names, or parts of names, under which LiteLLM's `callbacks` and `guardrails` switch on another compressor."""
VARIABLE = "os.environ/"
"""What a value begins with that LiteLLM reads from the environment."""
MOST_NAMED = 3
"""Deployments that a finding names; of a hundred alike, three and the number say enough."""


def weak_spots(config: Configuration) -> tuple[Finding, ...]:
    """Return what is wrong or weak, the worst first."""
    found = (
        *_registration(config),
        *_callbacks(config),
        *_variables(config),
        *_misspelt(config),
        *_unknown_groups(config),
        *_windows(config),
        *_compressors(config),
        *_router(config),
        *_orders(config),
        *_retries(config),
        *_events(config),
    )
    return tuple(sorted(found, key=lambda finding: ("fails", "weak", "note", "ok").index(finding.level)))


def _registration(config: Configuration) -> Iterator[Finding]:
    settings = config.section("litellm_settings")
    callbacks = _names(settings.get("callbacks"))
    advice = f'Write under `litellm_settings`: callbacks: ["{CALLBACK}"]'
    if CALLBACK in callbacks:
        return
    others = [name for name in OTHER_LISTS if CALLBACK in _names(settings.get(name))]
    wrong = [name for name in callbacks if name.split(".")[0] == "ctx_hooks"]
    if others:
        yield Finding("not_registered", "fails", no_effect(others[0]), advice)
    elif wrong:
        yield Finding("not_registered", "fails", f"litellm_settings.callbacks names {wrong[0]}, not {CALLBACK}", advice)
    else:
        yield Finding(
            "not_registered", "fails", "ctx_hooks is not in litellm_settings.callbacks: no request is treated", advice
        )


def _callbacks(config: Configuration) -> Iterator[Finding]:
    """Yield the callbacks whose module is not here; none is imported, but a package that holds one is."""
    settings = config.section("litellm_settings")
    named = {f"litellm_settings.{key}": _names(settings.get(key)) for key in ("callbacks", *OTHER_LISTS)}
    named["general_settings.custom_auth"] = _names(config.section("general_settings").get("custom_auth"))
    for path, names in named.items():
        for module in (name.rpartition(".")[0] for name in names if "://" not in name):
            if module and not _is_here(module, config.folder):
                yield Finding(
                    "callback_missing",
                    "fails",
                    f"{path}: there is no module {module} here; where there is none, LiteLLM does not start",
                    "Install it, or put its file beside the configuration.",
                )


def _is_here(module: str, folder: Path) -> bool:
    """Whether LiteLLM finds a module: beside the configuration, in the working directory or installed."""
    file = module.replace(".", "/")
    if any(exists(root / name) for root in (folder, Path()) for name in (f"{file}.py", file)):  # noqa: PTH110 - never raises
        return True
    try:
        return find_spec(module) is not None
    except Exception:  # noqa: BLE001 - the package that holds it may raise anything, and LiteLLM does not start either
        return False


def _variables(config: Configuration) -> Iterator[Finding]:
    """Yield the variables that the configuration names and this environment lacks; a secret manager may have them."""
    if config.section("general_settings").get("key_management_system"):
        return
    known = {*environ, *config.section("environment_variables")}
    used: dict[str, list[str]] = {}
    for path, value in _values(config.raw):
        if isinstance(value, str) and value.startswith(VARIABLE):
            used.setdefault(value.removeprefix(VARIABLE), []).append(path)
    for name, paths in used.items():
        if name not in known:
            yield Finding(
                "variable_unset",
                "weak",
                f"{name} is not set here: {_listed(paths)}",
                "Set it where the proxy runs: without it the proxy does not start, or the provider refuses its requests.",
            )


def _misspelt(config: Configuration) -> Iterator[Finding]:
    for path, value in _values(config.raw):
        if isinstance(value, Mapping) and path.endswith((".metadata", ".model_info")):
            for name in value:
                if name != NAME and resembling(name, [NAME]):
                    text = f"{path}.{name}: is not read; did you mean {NAME!r}?"
                    yield Finding("misspelt", "fails", text, f"Write `{NAME}`.")


def _values(raw: Any) -> Iterator[tuple[str, Any]]:
    """Yield each value of a configuration with its path; of a list or mapping that is in several places, one."""
    waiting, seen = [("", raw)], set()
    for path, value in waiting:
        yield path.removeprefix("."), value
        if isinstance(value, (list, Mapping)) and id(value) not in seen:
            seen.add(id(value))
            inner = value.items() if isinstance(value, Mapping) else enumerate(value)
            waiting += [(f"{path}.{name}", v) for name, v in inner]


def _unknown_groups(config: Configuration) -> Iterator[Finding]:
    """Yield the policies of model groups that no client can ask for; groups in LiteLLM's database are not known here."""
    if not config.lists_every_group:
        return
    router = config.section("router_settings")
    groups = [*(entry.group for entry in config.listed), *map(str, mapping_or_empty(router.get("model_group_alias")))]
    for pattern in config.settings.models:
        if not any(fnmatchcase(group, pattern) or fnmatchcase(pattern, group) for group in groups):
            text = f"models.{pattern}: the configuration has no such model group{suggestion(pattern, groups)}"
            yield Finding(
                "unknown_group", "fails", text, "Name a `model_name` of `model_list`, or a pattern such as openai/*."
            )


def _windows(config: Configuration) -> Iterator[Finding]:
    unknown: list[Listed] = []
    for listed in config.listed:
        policy = config.resolved(listed).policy
        window = window_of_deployment(listed.deployment, policy)
        if window.source == "default":
            unknown += [] if "*" in listed.deployment.model else [listed]
        elif window.tokens < policy.warn_below_tokens:
            yield Finding(
                "window_small",
                "note",
                f"The window of {_named([listed])} is small: {window.tokens:,} tokens ({window.source})",
                f"If that is right, `warn_below_tokens: {window.tokens}` in its policy ends the warning.",
            )
    if unknown:
        yield Finding(
            "window_unknown",
            "weak",
            f"The window of {_named(unknown)} is not known: {DEFAULT_WINDOW_TOKENS:,} tokens are assumed until a refusal "
            "names it",
            "Write it under the deployment: model_info: {max_input_tokens: TOKENS}",
        )


def _compressors(config: Configuration) -> Iterator[Finding]:
    guardrails = config.raw.get("guardrails")
    used = [mapping_or_empty(mapping_or_empty(g).get("litellm_params")).get("guardrail") for g in _list(guardrails)]
    names = [*_names(config.section("litellm_settings").get("callbacks")), *(str(name) for name in used if name)]
    for name in names:
        if any(other in name for other in COMPRESSORS):
            yield Finding(
                "other_compressor",
                "weak",
                f"{name} compresses the same requests: what it changes each time breaks the prompt cache, and LiteLLM's "
                "spend log has its savings alone",
                f"Keep one of the two: remove {name}, or set `mode: off` for the models that it is for.",
            )


def _router(config: Configuration) -> Iterator[Finding]:
    if config.section("router_settings").get("enable_pre_call_checks") is True:
        yield Finding(
            "pre_call_checks",
            "note",
            "enable_pre_call_checks: the Router refuses what no window of the group holds, so requests are fitted to the "
            "largest one before a deployment is chosen; with `mode: observe` what it refuses leaves no event",
            "Without it the plugin fits each request to the deployment that it goes to.",
        )
    if config.section("general_settings").get("cancel_on_disconnect") is not True:
        yield Finding(
            "cancel_on_disconnect",
            "weak",
            "A client that leaves does not end its call: the provider goes on, and so do the retries",
            "Write under `general_settings`: cancel_on_disconnect: true",
        )


def _orders(config: Configuration) -> Iterator[Finding]:
    """Yield the groups whose `order` puts a smaller window before a larger one."""
    by_group = groupby(sorted(config.listed, key=lambda listed: listed.group), key=lambda listed: listed.group)
    for group, listed in by_group:
        ordered = [(_order(entry), entry) for entry in listed]
        known = [(order, entry) for order, entry in ordered if order is not None]
        if not known:
            continue
        policy = config.resolved(known[0][1]).policy
        first = min(order for order, _ in known)
        sizes = [(order == first, window_of_deployment(entry.deployment, policy).tokens) for order, entry in known]
        largest = max(tokens for _, tokens in sizes)
        preferred = max(tokens for is_first, tokens in sizes if is_first)
        if preferred < largest and policy.deployment_choice == "any":
            yield Finding(
                "order",
                "weak",
                f"The group {group} has an `order` whose first deployment holds {preferred:,} tokens, another {largest:,}: "
                "requests between the two are compressed for the first",
                "`deployment_choice: holds_request` in its policy sends these to the larger one, past the order.",
            )


def _order(listed: Listed) -> int | None:
    said = (listed.params.get("order"), listed.deployment.model_info.get("order"))
    return next((order for order in said if isinstance(order, int)), None)


def _retries(config: Configuration) -> Iterator[Finding]:
    router = config.section("router_settings")
    attempts = 1 + max((config.resolved(listed).policy.rescue_attempts for listed in config.listed), default=3)
    by_group = mapping_or_empty(router.get("model_group_retry_policy"))
    policies = [
        ("retry_policy", router.get("retry_policy")),
        *((f"{g} of model_group_retry_policy", p) for g, p in by_group.items()),
    ]
    for name, policy in policies:
        again = mapping_or_empty(policy).get("BadRequestErrorRetries")
        if isinstance(again, int) and again > 0:
            yield Finding(
                "bad_request_retries",
                "weak",
                f"{name}: BadRequestErrorRetries: {again} has the Router ask again after each refusal: what is too long is "
                f"sent up to {(1 + again) * attempts} times",
                "Remove BadRequestErrorRetries: a request that was refused as wrong is not accepted the second time.",
            )
    retries = router.get("num_retries", config.section("litellm_settings").get("num_retries"))
    if isinstance(retries, int) and retries > 0 and attempts > 1:
        yield Finding(
            "retries_multiply",
            "note",
            f"num_retries: {retries} holds for each of the {attempts} attempts at an overflow, for errors that are none: at "
            f"worst a request is sent {(1 + retries) * attempts} times",
            "Where that is too many, lower num_retries or the policy's `rescue_attempts`.",
        )


def _events(config: Configuration) -> Iterator[Finding]:
    events = config.settings.events
    if events is not None and not isdir(events.path):  # noqa: PTH112 - where it may not be looked for, `Path.is_dir` raises
        yield Finding(
            "events_folder",
            "weak",
            f"There is no folder {events.path} here: where the proxy has none either, no event is written",
            "Make the folder where the proxy runs, writable for it.",
        )


def _named(listed: Iterable[Listed]) -> str:
    return _listed([f"{entry.group} ({entry.deployment.model})" for entry in listed])


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _names(value: Any) -> list[str]:
    """Return the callbacks of a list, which LiteLLM takes as one name too."""
    return [value] if isinstance(value, str) else [name for name in _list(value) if isinstance(name, str)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
