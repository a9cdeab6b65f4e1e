"""Every LiteLLM hook, on one leaf class: read, delegate, write back.

LiteLLM runs a pre-call hook only if the instance's own class defines it, so nothing here is inherited.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

from litellm.integrations.custom_logger import CustomLogger

from ctx_hooks.attempts.request import request_of
from ctx_hooks.flow.request_flow import COMPACTION_ROUTE, RequestFlow
from ctx_hooks.flow.startup import start
from ctx_hooks.litellm_compat.call import request_id_of, with_id_outside_proxy
from ctx_hooks.litellm_compat.deployments import configuration
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.litellm_compat.registry import is_proxy
from ctx_hooks.litellm_compat.rescue import take_retry_mark
from ctx_hooks.policy.loading import load_settings, located
from ctx_hooks.policy.resolve import switched_off
from ctx_hooks.telemetry.log import share_log_output


class CtxHooks(CustomLogger):  # type: ignore[misc]  # LiteLLM's class is untyped here
    """The callback of `litellm_settings.callbacks: ["ctx_hooks.proxy_handler_instance"]`.

    Attributes:
        flow: the state of the process, with the newest instance's settings: LiteLLM is patched once for all instances.
    """

    flow: ClassVar[RequestFlow]

    def __init__(self) -> None:
        super().__init__()
        share_log_output()
        self.settings, mistakes = load_settings(*located(configuration()))
        CtxHooks.flow = RequestFlow(self.settings)
        start(self.settings, mistakes, lambda: CtxHooks.flow)

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any]:
        """Configure retries in the Router; fit the request here only if the Router itself would refuse it."""
        with failing_open("forwards the request unchanged"):
            request = request_of(call_type, data)
            if request is not None:
                return await self.flow.before_choice(request)
            if str(getattr(call_type, "value", call_type)) == COMPACTION_ROUTE and not switched_off():
                return await self.flow.before_compaction(data)
            return data
        self.flow.note_fault(data)
        return data

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: Any) -> dict[str, Any]:
        """Fit each attempt to the deployment that the Router chose; refuse a retry that would repeat a refused attempt.

        A proxy's call that no Router has routed is LiteLLM's own, such as the translation of Google's for another provider
        before 1.108: the policy of its model group is not known, and may be off.
        """
        sent = dict(kwargs)
        with failing_open("forwards the request unchanged"):
            number, fallbacks = take_retry_mark(sent)
            if fallbacks is not None:
                self.flow.running.of(request_id_of(sent)).other_fallbacks = fallbacks
            request = request_of(call_type, sent)
            if request is not None and (request.call.is_routed or not is_proxy()):
                with_id = with_id_outside_proxy(sent, request.format)
                if with_id is not sent:
                    request = request.with_fields(with_id)
                return await self.flow.before_attempt(request, self.flow.target_of(request.call, number))
            return sent
        self.flow.note_fault(sent)
        return sent

    async def async_post_call_failure_deployment_hook(
        self, request_data: Mapping[str, Any], exception: Exception, call_type: Any, fallback_depth: int | None = None
    ) -> None:
        """Note the provider's error for an attempt; the next attempt uses it."""
        with failing_open("learns nothing from an error"):
            await self.flow.note_failure(request_data, exception)

    async def async_logging_hook(self, kwargs: dict[str, Any], result: Any, call_type: str) -> tuple[dict[str, Any], Any]:
        """Learn from each answer, streamed or not, and note the savings before any callback logs the answer."""
        with failing_open("learns nothing from an answer"):
            await self.flow.after_answer(kwargs, result)
        return kwargs, result

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> Any:
        """Remove hidden calls from an answer."""
        return await self.flow.addons.whole(self.flow.running.of(request_id_of(data)), data, response)

    def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: AsyncIterator[Any], request_data: dict[str, Any]
    ) -> AsyncIterator[Any]:
        """Do the same with a stream."""
        return self.flow.addons.streamed(self.flow.running.of(request_id_of(request_data)), request_data, response)

    async def async_post_call_response_headers_hook(self, data: dict[str, Any], **_: Any) -> dict[str, str] | None:
        """Report the decision to the caller, and its own settings that the policy does not allow."""
        with failing_open("adds no header"):
            return self.flow.running.headers_of_answer(request_id_of(data))
        return None

    async def async_post_call_failure_hook(
        self, request_data: dict[str, Any], original_exception: Exception, **_: Any
    ) -> Exception | None:
        """Write the text of the final context-window error."""
        if switched_off():
            return None
        with failing_open("leaves the error as it is"):
            return self.flow.after_failure(request_data, original_exception)
        return None
