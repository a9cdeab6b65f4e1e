"""Find parts of a proxy configuration that stop the plugin or make it work worse than it could, with advice."""

import os
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.util import find_spec
from typing import Any, get_args

from ctx_hooks.cli.configuration import PLUGIN, Configuration, Listed, values_of
from ctx_hooks.cli.findings import Finding, Level, finding
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.deployments import names_redis
from ctx_hooks.policy.loading import NAME
from ctx_hooks.policy.scopes import suggestion
from ctx_hooks.request.target import window_at
from ctx_hooks.tokens.budget import DEFAULT_WINDOW_TOKENS, SMALL_WINDOW_TOKENS, replaced_reserve

OTHER_LISTS = ("success_callback", "failure_callback", "input_callback")
"""Lists for loggers: LiteLLM calls their instances after answers and errors, but not before a call."""
COMPRESSORS = ("compression_interception", "headroom")
"""Names, or parts of names, under which LiteLLM's `callbacks` and `guardrails` switch on another compressor."""
MOST_NAMED = 3
"""Deployments that a finding names; of a hundred alike, three and the number say enough."""


def weak_spots(config: Configuration) -> tuple[Finding, ...]:
    """Return the findings, the worst first."""
    found = (
        *_registration(config),
        *_metrics(config),
        *_misspelt(config),
        *_unknown_groups(config),
        *_addons(config),
        *_windows(config),
        *_misplaced_windows(config),
        *_compressors(config),
        *_router(config),
        *_retries(config),
        *_fallbacks(config),
        *_events(config),
    )
    return tuple(sorted(found, key=lambda spot: get_args(Level).index(spot.level)))


def _registration(config: Configuration) -> Iterator[Finding]:
    settings = config.section("litellm_settings")
    callbacks = _names(settings.get("callbacks"))
    if PLUGIN in callbacks:
        return
    others = [name for name in OTHER_LISTS if PLUGIN in _names(settings.get(name))]
    wrong = [name for name in callbacks if name.split(".")[0] == "ctx_hooks"]
    reason = "ctx_hooks is not in litellm_settings.callbacks: no request is treated"
    if others:
        reason = f"in litellm_settings.{others[0]} ctx_hooks has no effect: list it under litellm_settings.callbacks"
    elif wrong:
        reason = f"litellm_settings.callbacks names {wrong[0]}, not {PLUGIN}"
    kept = [name for name in callbacks if name not in wrong]
    yield finding("not_registered", reason=reason, callbacks=", ".join(f'"{name}"' for name in (*kept, PLUGIN)))


def _metrics(config: Configuration) -> Iterator[Finding]:
    settings = config.section("litellm_settings")
    names = [name for key in ("callbacks", "service_callback", *OTHER_LISTS) for name in _names(settings.get(key))]
    if any(name.startswith("prometheus") for name in names) and find_spec("prometheus_client") is None:
        yield finding("metrics_client")


def _misspelt(config: Configuration) -> Iterator[Finding]:
    for path, value in values_of(config.raw):
        if isinstance(value, Mapping) and path.endswith((".metadata", ".model_info")):
            for name in value:
                if name != NAME and suggestion(name, [NAME]):
                    yield finding("misspelt", path=f"{path}.{name}", name=NAME)


def _unknown_groups(config: Configuration) -> Iterator[Finding]:
    """Yield the policies of model groups that no client can request; groups in LiteLLM's database are not known here."""
    if not config.lists_every_group:
        return
    router = config.section("router_settings")
    groups = [*(entry.group for entry in config.listed), *map(str, mapping_or_empty(router.get("model_group_alias")))]
    for pattern in config.settings.models:
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


def _misplaced_windows(config: Configuration) -> Iterator[Finding]:
    """Yield each figure that was meant as a window and is not read as one."""
    for listed in config.listed:
        info, named = listed.deployment.model_info, _named([listed])
        if "max_input_tokens" in listed.params:
            tokens = listed.params["max_input_tokens"]
            yield finding("window_misplaced", deployment=named, field="litellm_params.max_input_tokens", tokens=tokens)
        elif "max_tokens" in info and "max_input_tokens" not in info:
            yield finding("window_misplaced", deployment=named, field="model_info.max_tokens", tokens=info["max_tokens"])


def _windows(config: Configuration) -> Iterator[Finding]:
    unknown: list[Listed] = []
    for listed in config.listed:
        resolved = config.resolved(listed)
        window = window_at(listed.deployment, policy := resolved.policy)
        if "reserve" in resolved.origins and (replaced := replaced_reserve(window, policy)):
            yield finding("reserve_replaced", deployment=_named([listed]), replaced=replaced)
        if window.source == "default":
            unknown += [] if "*" in listed.deployment.model else [listed]
        elif window.tokens < SMALL_WINDOW_TOKENS and policy.block_below_tokens != 0:
            tokens, deployment = window.tokens, _named([listed])
            yield finding("window_small", deployment=deployment, tokens=f"{tokens:,}", source=window.source)
    if unknown:
        yield finding("window_unknown", deployments=_named(unknown), tokens=f"{DEFAULT_WINDOW_TOKENS:,}")


def _compressors(config: Configuration) -> Iterator[Finding]:
    guardrails = config.raw.get("guardrails")
    used = [mapping_or_empty(mapping_or_empty(g).get("litellm_params")).get("guardrail") for g in _list(guardrails)]
    names = [*_names(config.section("litellm_settings").get("callbacks")), *(str(name) for name in used if name)]
    for name in names:
        if any(other in name for other in COMPRESSORS):
            yield finding("other_compressor", name=name)


def _router(config: Configuration) -> Iterator[Finding]:
    if config.section("router_settings").get("enable_pre_call_checks") is True:
        yield finding("pre_call_checks")
    if config.section("general_settings").get("cancel_on_disconnect") is not True:
        yield finding("cancel_on_disconnect")


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
            yield finding("bad_request_retries", name=name, retries=again, times=(1 + again) * attempts)


def _fallbacks(config: Configuration) -> Iterator[Finding]:
    """Yield for each group with fallbacks which comes first for a request that is too long for it."""
    for listed in {entry.group: entry for entry in reversed(config.listed)}.values():
        policy, groups = config.resolved(listed).policy, config.fallbacks_of(listed.group)
        if groups and policy.mode != "off":
            yield finding(
                "fallbacks_first" if policy.fallbacks == "first" else "fallbacks_last",
                group=listed.group,
                fallbacks=", ".join(groups),
            )


def _events(config: Configuration) -> Iterator[Finding]:
    events = config.settings.events
    if events is not None and not os.path.isdir(events.path):  # noqa: PTH112 - where it may not be looked for, `Path.is_dir` raises
        yield finding("events_folder", path=events.path)


def _named(listed: Iterable[Listed]) -> str:
    names = [f"{entry.group} ({entry.deployment.model})" for entry in listed]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _names(value: Any) -> list[str]:
    """Return the callbacks of a list, which LiteLLM takes as one name too."""
    return [value] if isinstance(value, str) else [name for name in _list(value) if isinstance(name, str)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
