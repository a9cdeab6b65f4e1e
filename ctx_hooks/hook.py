"""Every LiteLLM hook, on one leaf class: read, delegate, write back.

LiteLLM runs a pre-call hook only where the instance's own class defines it, so nothing here is inherited.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import litellm
from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger

from ctx_hooks import litellm_compat
from ctx_hooks.decision import NotRetried, Untouched
from ctx_hooks.learning.calibration import billed_input_tokens
from ctx_hooks.overflow.message import CODE, readable_error, small_window
from ctx_hooks.policy.resolve import Policies, load_settings, switched_off
from ctx_hooks.request import target
from ctx_hooks.request.request import Request, format_of, request_of
from ctx_hooks.serving.attempt_runner import AttemptRunner
from ctx_hooks.serving.final_error import facts_of
from ctx_hooks.serving.startup import start
from ctx_hooks.telemetry.headers import Headers
from ctx_hooks.telemetry.spend_log import figures_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ctx_hooks.request.target import Target

logger = logging.getLogger("ctx_hooks")


class CtxHooks(CustomLogger):  # type: ignore[misc]  # LiteLLM's class is untyped here
    """The callback of `litellm_settings.callbacks: ["ctx_hooks.proxy_handler_instance"]`."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = load_settings(litellm.callback_settings.get("ctx_hooks"))
        self.policies = Policies(self.settings)
        self.runner = AttemptRunner(litellm_compat.shared_cache)
        self.headers = Headers()
        start(self.settings, self._handles, self._note_failure)
        litellm_compat.warn_of_other_lists(self)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any]:
        """Arrange the rescue with the Router; fit the request here only where the Router would refuse it itself."""
        with _failing_open("forwards the request unchanged"):
            return await self._arranged(data, call_type)
        return data

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any]:
        """Fit each attempt to the deployment that the Router chose; on a retry of ours compress harder.

        Raises ContextWindowExceededError in the place of a retry that would send again what was refused.
        """
        sent = dict(kwargs)
        with _failing_open("forwards the request unchanged"):
            attempt = litellm_compat.take_retry_mark(sent)
            request = request_of(call_type, sent)
            if request is not None and not switched_off():
                return await self._decided(request, sent, target.of_attempt(sent, self.policies, attempt))
        return sent

    async def _arranged(self, data: dict[str, Any], call_type: Any) -> dict[str, Any]:
        request = request_of(call_type, data)
        if request is None or switched_off():
            return data
        group = target.of_group(data, self.policies)
        if not group.policy.enabled:
            return data
        data = litellm_compat.with_request_id(litellm_compat.without_request_key(data))
        request_id = litellm_compat.request_id_of(data)
        self.headers.note_ignored(request_id, group.ignored)
        if group.window.tokens < group.policy.block_below_tokens:
            raise litellm_compat.refusal(small_window(group.window.tokens, group.policy.block_below_tokens))
        arranged = litellm_compat.arrange_rescue(data, group.policy.rescue_attempts)
        if not litellm_compat.checks_before_deployment():
            return arranged
        return await self._decided(request, arranged, replace(group, request_id=request_id))

    async def _decided(self, request: Request, fields: dict[str, Any], to: Target) -> dict[str, Any]:
        if not to.policy.enabled:
            return fields
        decision = await self.runner.decide(request, to)
        self.headers.note(to.request_id, decision)
        litellm_compat.write_figures(fields, figures_of(decision, to.attempt, to.scopes))
        if isinstance(decision, NotRetried):
            attempt = self.runner.attempts.last(to.request_id)
            raise litellm_compat.not_retried(attempt.refusal if attempt else "", fields)
        return fields if isinstance(decision, Untouched) else {**fields, **decision.changes}

    def log_pre_api_call(self, model: Any, messages: Any, kwargs: Mapping[str, Any]) -> None:
        """Say of a synchronous call that it is not fitted: LiteLLM tells of it here alone before it is sent."""
        litellm_compat.warn_of_synchronous_call(kwargs)

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: Any,
        fallback_depth: int | None = None,
    ) -> None:
        """Note what the provider said of an attempt, for the next one."""
        with _failing_open("learns nothing from an error"):
            await self._note_failure(request_data, exception)

    async def async_post_call_response_headers_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,
        response: Any,
        request_headers: dict[str, str] | None = None,
        litellm_call_info: dict[str, Any] | None = None,
    ) -> dict[str, str] | None:
        """Tell the caller what was done, and what he asked for and may not have."""
        with _failing_open("adds no header"):
            return self.headers.of(litellm_compat.request_id_of(data))
        return None

    def _handles(self, fields: Mapping[str, Any]) -> bool:
        """Whether the plugin is on for an attempt; what goes wrong here leaves the attempt to LiteLLM."""
        with _failing_open("leaves an error as it is"):
            if litellm_compat.passed_pre_call_hook(fields) and not switched_off():
                return target.of_attempt(fields, self.policies, 0).policy.enabled
        return False

    async def _note_failure(self, fields: Mapping[str, Any], error: Exception) -> bool:
        """Note an attempt's failure, once, and return whether it is an overflow that the plugin handles."""
        overflow = litellm_compat.overflow_of(error) if self._handles(fields) else None
        await self.runner.failed(litellm_compat.request_id_of(fields), overflow, litellm_compat.text_of(error))
        if overflow is not None:
            litellm_compat.spare_deployment(fields)
        return overflow is not None

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn from the usage of every answer, streamed ones too, what the provider bills."""
        with _failing_open("learns nothing from an answer"):
            billed = billed_input_tokens(litellm_compat.usage_of(response_obj))
            await self.runner.answered(litellm_compat.request_id_of(kwargs), billed)

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> Exception | None:
        """Word the final context-window error."""
        if not isinstance(original_exception, litellm.ContextWindowExceededError) or switched_off():
            return None
        with _failing_open("leaves the error as it is"):
            policy = target.of_group(request_data, self.policies).policy
            if policy.enabled and litellm_compat.passed_pre_call_hook(request_data):
                attempt = self.runner.attempts.last(litellm_compat.request_id_of(request_data))
                facts = facts_of(attempt, litellm_compat.overflow_of(original_exception), policy)
                text = readable_error(format_of(request_data), facts, policy)
                return litellm_compat.worded_error(original_exception, text, CODE)
        return None


@contextmanager
def _failing_open(consequence: str) -> Iterator[None]:
    """Survive whatever goes wrong here: a proxy must not lose a request, an answer or an error to us."""
    try:
        yield
    except (HTTPException, litellm.ContextWindowExceededError):
        raise  # the answer to a window that the operator does not serve; a retry that is not sent
    except Exception as error:
        logger.warning("ctx_hooks failed and %s", consequence, exc_info=error)
