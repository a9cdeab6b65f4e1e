"""Which known name an unknown one may have meant: another system's, or one that it resembles."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from ctx_hooks.policy.addon_settings import ArchiveSettings, SummarySettings
from ctx_hooks.policy.loading import SECTION
from ctx_hooks.policy.scopes import OWN_KEYS
from ctx_hooks.policy.settings import PRESETS, EventFiles, Policy, Settings, ToolResultLimits

_RATIO = "older results give way as far as the budget needs it; write `tool_results: {max_fraction: 0.3}` for one result"
KNOWN_ELSEWHERE: Mapping[str, str] = {
    "reservetokens": "write `reserve: 16384`",
    "reservetokensfloor": "write `reserve: 16384`",
    "keeprecenttokens": "write `keep_recent: 20000`",
    "contextwindowoverride": "the deployment states its window, as `max_input_tokens` in its `model_info`",
    "contexttokens": "write `window_tokens: 128000`",
    "historylimit": "write `max_turns: 50`",
    "dmhistorylimit": "write `max_turns: 50` under `sessions: {'dm:*': ...}`",
    "softtrimratio": _RATIO,
    "hardtrimratio": _RATIO,
    "maxoverflowcompactionattempts": "write `rescue_attempts: 3`",
    "maxlines": "write `tool_results: {max_lines: 2000}`",
    "maxbytes": "write `tool_results: {max_bytes: 51200}`",
    "truncatedirection": "write `tool_results: {direction: head}`",
    "tooloutputdir": "write `archive: {backend: disk, path: FOLDER}`, or set it in the environment",
    "tooloutputretentiondays": "write `archive: {retention_days: 7}`, or set it in the environment",
}
"""Names of OpenClaw, pi, nanobot and MyCodeAgent, in small letters without separators, with the hint."""
_NESTED: Mapping[str, type[BaseModel]] = {
    "tool_results": ToolResultLimits,
    "archive": ArchiveSettings,
    "summary": SummarySettings,
    "events": EventFiles,
}
_UNKNOWN = re.compile(r"(\w*)\.(\w+): there is no such field|'(.{1,60})' is no (?:field and no policy|field|policy)")


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: what to write for another system's name, or the name that it resembles."""
    plain = re.sub(r"[^a-z]", "", str(name).lower())
    if hint := KNOWN_ELSEWHERE.get(plain, KNOWN_ELSEWHERE.get(plain.removeprefix("tooloutput"))):
        return f"; {hint}"
    found = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""


def with_hint(mistake: str, settings: Settings) -> str:
    """Return the line of a mistake, with a hint if it is an unknown name."""
    if not (found := _UNKNOWN.search(mistake)):
        return mistake
    section, field, name = found.groups()
    is_top = mistake.startswith(f"{SECTION}.{field}:")
    if name:
        hint = suggestion(name, (*Policy.model_fields, *PRESETS, *settings.policies))
    elif is_top and field in (*Policy.model_fields, *OWN_KEYS):
        hint = "; it belongs under `defaults`"
    elif section in _NESTED:
        hint = suggestion(field, _NESTED[section].model_fields)
    else:
        hint = suggestion(field, Settings.model_fields if is_top else (*Policy.model_fields, *OWN_KEYS))
    return mistake.replace(found[0], found[0] + hint, 1)
