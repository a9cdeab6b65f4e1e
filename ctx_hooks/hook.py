"""Every LiteLLM hook, on one leaf class: read, delegate, write back.

LiteLLM runs a pre-call hook only where the instance's own class defines it, so nothing here is inherited.
"""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING, Any

import litellm
from fastapi import HTTPException
from litellm.integrations.custom_logger import CustomLogger

from ctx_hooks import content_cache, destination, litellm_compat
from ctx_hooks.decision import Decision, Untouched
from ctx_hooks.engine import Engine
from ctx_hooks.overflow.recognise import Overflow, recognise_overflow, too_large_for_rate
from ctx_hooks.overflow.report import CODE, readable_error, small_window
from ctx_hooks.policy.resolve import Policies, load_settings, switched_off
from ctx_hooks.request import format_of, request_of
from ctx_hooks.tokens import vocabulary
from ctx_hooks.tokens.calibration import billed_input_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping


logger = logging.getLogger("ctx_hooks")


class CtxHooks(CustomLogger):  # type: ignore[misc]  # LiteLLM's class is untyped here
    """The callback of `litellm_settings.callbacks: ["ctx_hooks.proxy_handler_instance"]`."""

    def __init__(self) -> None:
        super().__init__()
        self.settings = load_settings(litellm.callback_settings.get("ctx_hooks"))
        self.policies = Policies(self.settings)
        content_cache.set_limit_bytes(self.settings.cache_bytes)
        vocabulary.load_all()
        if self.settings.reclassify_errors:
            litellm_compat.reclassify(lambda error: _overflow_of(error) is not None, self._note_overflow_in_stream)
        if self.settings.freeze_startup_objects:
            # A full collection walks all that LiteLLM has loaded and holds up every request meanwhile.
            gc.freeze()
        self.engine = Engine(litellm_compat.shared_cache)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any]:
        """Arrange the rescue with the Router; fit the request here only where the Router would refuse it itself."""
        del user_api_key_dict, cache
        try:
            return await self._arranged(data, call_type)
        except HTTPException:
            raise  # the answer to a window that the operator does not serve
        except Exception as error:  # noqa: BLE001 - it fails open
            return _as_it_came(data, error)

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any]:
        """Fit each attempt to the deployment that the Router chose; on a retry of ours compress harder."""
        sent = dict(kwargs)
        try:
            rung = litellm_compat.take_rung(sent)
            request = request_of(call_type, sent)
            if request is None or switched_off():
                return sent
            return _changed(sent, await self.engine.decide(request, destination.of_attempt(sent, self.policies, rung)))
        except Exception as error:  # noqa: BLE001 - it fails open
            return _as_it_came(sent, error)

    async def _arranged(self, data: dict[str, Any], call_type: Any) -> dict[str, Any]:
        request = request_of(call_type, data)
        if request is None or switched_off():
            return data
        data = litellm_compat.without_request_key(data)
        group = destination.of_group(data, self.policies)
        if not group.policy.enabled:
            return data
        if group.window.tokens < group.policy.block_below_tokens:
            raise litellm_compat.refusal(small_window(group.window.tokens, group.policy.block_below_tokens))
        arranged = litellm_compat.arrange_rescue(data, group.policy.rescue_attempts)
        if not litellm_compat.checks_before_deployment():
            return arranged
        return _changed(arranged, await self.engine.decide(request, group))

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: Any,
        fallback_depth: int | None = None,
    ) -> None:
        """Note what the provider said of an attempt, for the next one."""
        del call_type, fallback_depth
        await self.engine.failed(litellm_compat.call_id_of(request_data), _overflow_of(exception))

    async def async_post_call_response_headers_hook(
        self,
        data: dict[str, Any],
        user_api_key_dict: Any,
        response: Any,
        request_headers: dict[str, str] | None = None,
        litellm_call_info: dict[str, Any] | None = None,
    ) -> dict[str, str] | None:
        """Tell the caller what was done, and what he asked for and may not have."""
        del user_api_key_dict, response, request_headers, litellm_call_info
        ignored = destination.of_group(data, self.policies).ignored
        told = {"x-ctx-hooks": self.engine.told(litellm_compat.call_id_of(data))}
        own = [line.removeprefix("request: ") for line in ignored if line.startswith("request")]
        return told | ({"x-ctx-hooks-ignored": "; ".join(own).encode("ascii", "replace").decode()} if own else {})

    async def _note_overflow_in_stream(self, fields: Mapping[str, Any], error: Exception) -> bool:
        overflow = _overflow_of(error)
        if overflow is not None:
            await self.engine.failed(litellm_compat.call_id_of(fields), overflow)
        return overflow is not None

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Learn from the usage of every answer, streamed ones too, what the provider bills."""
        del start_time, end_time
        await self.engine.answered(
            litellm_compat.call_id_of(kwargs), billed_input_tokens(litellm_compat.usage_of(response_obj))
        )

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> Exception | None:
        """Word the final error of an overflow that nothing could cure."""
        del user_api_key_dict, traceback_str
        if not isinstance(original_exception, litellm.ContextWindowExceededError):
            return None
        attempt = self.engine.attempts.last(litellm_compat.call_id_of(request_data))
        policy = destination.of_group(request_data, self.policies).policy
        if not policy.enabled or switched_off():
            return None
        text = readable_error(format_of(request_data), attempt, policy)
        return litellm_compat.worded_error(original_exception, text, CODE)


def _overflow_of(error: Exception) -> Overflow | None:
    return recognise_overflow(error, provider=litellm_compat.provider_of(error)) or too_large_for_rate(error)


def _as_it_came(fields: dict[str, Any], error: Exception) -> dict[str, Any]:
    """Forward a request unchanged: a proxy must not lose it to us, whatever is wrong here."""
    logger.warning("ctx_hooks failed and forwards the request unchanged", exc_info=error)
    return fields


def _changed(fields: dict[str, Any], decision: Decision) -> dict[str, Any]:
    return fields if isinstance(decision, Untouched) else {**fields, **decision.changes}
