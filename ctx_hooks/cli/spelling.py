"""Which known name an unknown one may have meant."""

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from ctx_hooks.policy.addon_settings import ArchiveSettings, SummarySettings
from ctx_hooks.policy.loading import SECTION
from ctx_hooks.policy.scopes import OWN_KEYS
from ctx_hooks.policy.settings import PRESETS, EventFiles, Policy, Settings, ToolResultLimits

_NESTED: Mapping[str, type[BaseModel]] = {
    "tool_results": ToolResultLimits,
    "archive": ArchiveSettings,
    "summary": SummarySettings,
    "events": EventFiles,
}
_UNKNOWN = re.compile(r"(\w*)\.(\w+): there is no such field|'(.{1,60})' is no (?:field and no policy|field|policy)")


def suggestion(name: Any, known: Iterable[str]) -> str:
    """Return the hint for an unknown name: the known one that it resembles, or ""."""
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
