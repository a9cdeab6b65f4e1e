"""The call of the model that writes a summary: a request of the proxy's own, on the account of the conversation's caller.

What LiteLLM 1.103 to 1.110 do, and what follows:

1. `add_litellm_data_to_request` takes account, tags and callbacks from the `UserAPIKeyAuth` in the request's metadata. That
   one has the request's budget reservation and span: a summary with them would settle the caller's reservation.
2. `run_centralized_common_checks` checks the budgets of team, user, organization and key, and the team's models. With
   `disable_budget_reservation` only `virtual_key_max_budget_check` checks the key's budget, and only `can_key_call_model`
   checks the key's models: a policy that a caller may set must not open every model to him.
3. `pre_call_hook` has rate limits and guardrails. `parallel_request_limiter_v3` pairs a request with its release by a
   context variable: the call has a context of its own. `post_call_failure_hook` gives back reservation and place.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from ctx_hooks.litellm_compat.call import SUMMARY_MARK, Call
from ctx_hooks.litellm_compat.deployments import proxy_router
from ctx_hooks.litellm_compat.logged import COST
from ctx_hooks.litellm_compat.registry import ADD_DATA, COMMON_CHECKS, KEY_BUDGET, MAY_CALL, SUMMARY_CALL
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.runtime.warnings import warn_once

TAG = "ctx_hooks:summary"
"""The tag of a summary's call in spend and logs."""
ROUTE = "/chat/completions"
"""The route of the proxy whose checks a call goes through."""
ONCE: dict[str, Any] = {"num_retries": 0, "disable_fallbacks": True}
"""The conversation goes to the model that the policy names, and to no other."""


class Answer(NamedTuple):
    """What the model wrote, whether it came to its end before `max_tokens`, and what it cost, None if that is unknown."""

    text: str
    is_whole: bool
    dollars: float | None = None


def payer_of(call: Call) -> Any:
    """Return on whose account a summary for this request is written.

    None outside the proxy, where there are no accounts, and if this LiteLLM lacks what such a call needs.
    """
    auth = call.auth if proxy_router() is not None else None
    if auth is None:
        warn_once("summaries are written in the proxy alone, which knows whose budget they are on: none are written here")
    return None if any(name.fault for name in SUMMARY_CALL) else auth


async def ask(settings: SummarySettings, messages: Sequence[Mapping[str, str]], payer: Any) -> Answer:
    """Return what the model that settings name answers, after the checks that a request of this caller goes through.

    Raises:
        TimeoutError: it takes longer than the settings allow.
        Exception: whatever the checks, the Router or the provider raise; the call's place and reservation are given back.
    """
    fields = {"model": settings.model, "messages": [*messages], "max_tokens": settings.max_tokens}
    response = await asyncio.wait_for(_sent(fields, settings.timeout_seconds, payer), settings.timeout_seconds)
    choice, cost = response.choices[0], (getattr(response, "_hidden_params", None) or {}).get(COST)
    dollars = cost if isinstance(cost, (int, float)) else None
    return Answer(choice.message.content or "", choice.finish_reason != "length", dollars)


async def _sent(fields: Mapping[str, Any], timeout_seconds: float, payer: Any) -> Any:
    from fastapi import Request  # noqa: PLC0415 - a part of the proxy
    from litellm.proxy import proxy_server  # noqa: PLC0415 - loaded by the proxy long before

    payer = payer.model_copy(update={"budget_reservation": None, "parent_otel_span": None, "request_route": ROUTE})
    data: dict[str, Any] = {**fields, "litellm_call_id": str(uuid4()), "metadata": {"tags": [TAG]}}
    # A request without a sender, for functions that look for the headers and address of one.
    request = Request({"type": "http", "method": "POST", "path": ROUTE, "query_string": b"", "headers": []})
    logging = proxy_server.proxy_logging_obj
    try:
        await MAY_CALL.find()(data["model"], proxy_server.llm_model_list, payer, proxy_server.llm_router)
        await KEY_BUDGET.find()(payer, logging)
        await COMMON_CHECKS.find()(payer, request, data, ROUTE)
        data = await ADD_DATA.find()(data, request, payer, proxy_server.proxy_config)
        data["metadata"] |= SUMMARY_MARK
        data = await logging.pre_call_hook(user_api_key_dict=payer, data=data, call_type="acompletion")
        return await proxy_server.llm_router.acompletion(**(data | {"timeout": timeout_seconds} | ONCE))
    except (Exception, asyncio.CancelledError) as error:
        failure = error if isinstance(error, Exception) else TimeoutError("the summary was not waited for")
        await logging.post_call_failure_hook(request_data=data, original_exception=failure, user_api_key_dict=payer)
        raise
