"""From the settings, and what a deployment says, to the policy of one request."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from ctx_hooks.policy.settings import Policy, Settings

if TYPE_CHECKING:
    from collections.abc import Mapping

logger = logging.getLogger("ctx_hooks")


def load_settings(raw: Any) -> Settings:
    """Return the settings of `callback_settings.ctx_hooks`; every mistake is logged, and then the defaults hold."""
    try:
        return Settings.model_validate(raw or {})
    except ValidationError as error:
        for line in mistakes(error):
            logger.warning("callback_settings.ctx_hooks: %s; the defaults are used", line)
        return Settings()


def with_overrides(policy: Policy, overrides: Mapping[str, Any] | None, where: str) -> Policy:
    """Return `policy` with the fields of `overrides`; when these are wrong they are logged and left out."""
    if not overrides:
        return policy
    try:
        return Policy.model_validate({**policy.model_dump(exclude_unset=True), **overrides})
    except (ValidationError, TypeError) as error:
        lines = mistakes(error) if isinstance(error, ValidationError) else [str(error)]
        for line in lines:
            logger.warning("%s: %s; it is left out", where, line)
        return policy


def mistakes(error: ValidationError) -> list[str]:
    """Return each mistake with its path, the value and what is allowed."""
    return [f"{'.'.join(map(str, e['loc']))}: {e['msg']} (got {e['input']!r:.80})" for e in error.errors(include_url=False)]
