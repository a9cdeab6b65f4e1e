"""The call of the model that writes a summary: a request of the proxy's own, on the account of the conversation's caller.

What LiteLLM 1.103 to 1.110 do, and what follows:

1. Spend is attributed by `metadata`: `_PROXY_track_cost_callback` reads `user_api_key` (the key's hash), `..._user_id`,
   `..._team_id`, `..._org_id` and `tags`; `add_litellm_data_to_request` sets all of them from a `UserAPIKeyAuth`, with the
   tags, guardrails and callbacks of key and team.
2. A request's `UserAPIKeyAuth` is in its metadata as `user_api_key_auth`. It holds the request's budget reservation and
   span: the summary goes with a copy without them, or it would settle the caller's reservation.
3. Budgets of team, user, organization, end user and tags, and the team's models: `run_centralized_common_checks`, which
   also reserves (and so checks) the key's budget; with `disable_budget_reservation` only `virtual_key_max_budget_check`
   looks at that. With custom authentication common checks run where `custom_auth_run_common_checks` says so.
4. The key's models are checked apart from these, by `can_key_call_model`: a key that may not call the summary's model gets
   no summary, else a policy that a caller may set would open every model to him.
5. Rate limits (rpm, tpm, parallel requests), budget hooks and guardrails: `ProxyLogging.pre_call_hook`.
   `parallel_request_limiter_v3` pairs a request with its release by a context variable: the call has a context of its own.
6. A call that fails gives back its reservation and its place through `ProxyLogging.post_call_failure_hook`.
7. Names with an underscore are those of earlier versions; 1.106 keeps them as aliases of the ones above.
"""

import asyncio
import contextvars
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from ctx_hooks.litellm_compat.call import SUMMARY_MARK, Call
from ctx_hooks.litellm_compat.deployments import proxy_router
from ctx_hooks.litellm_compat.logged import COST
from ctx_hooks.litellm_compat.registry import ADD_DATA, COMMON_CHECKS, KEY_BUDGET, MAY_CALL, SUMMARY_CALL
from ctx_hooks.runtime.warnings import warn_once

T = TypeVar("T")

TAG = "ctx_hooks:summary"
"""The tag of a summary's call in spend and logs."""
ROUTE = "/chat/completions"
"""The route of the proxy whose checks a call goes through."""
ONCE: Mapping[str, Any] = {"num_retries": 0, "disable_fallbacks": True}
"""How the Router asks: the conversation goes to the model that the policy names, and to none that stands in for it."""
FAILURE_HOOK_SECONDS = 2.0
"""The hooks of all callbacks run there, within the lease of a flight that has failed already."""


class Answer(NamedTuple):
    """What the model wrote, whether it came to its end before `max_tokens`, and its bill as far as that is known."""

    text: str
    is_whole: bool
    input_tokens: int | None = None
    output_tokens: int | None = None
    dollars: float | None = None


def payer_of(call: Call) -> Any:
    """Return on whose account a summary for this request is written.

    None outside the proxy, where there are no accounts, and where this LiteLLM lacks what such a call needs.
    """
    auth = call.auth if proxy_router() is not None else None
    if auth is None:
        warn_once("summaries are written in the proxy alone, which knows whose budget they are on: none are written here")
    return None if any(name.fault for name in SUMMARY_CALL) else auth


def start_apart(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task in an empty context: LiteLLM keeps what belongs to the caller's request in context variables."""
    return contextvars.Context().run(asyncio.get_running_loop().create_task, work)


async def ask(
    model: str, messages: Sequence[Mapping[str, Any]], max_tokens: int, timeout_seconds: float, payer: Any
) -> Answer:
    """Return what a model group of the proxy answers, after the checks that a request of this caller goes through.

    Raises:
        TimeoutError: it takes longer.
        Exception: whatever the checks, the Router or the provider raise; the call's place and reservation are given back.
    """
    fields = {"model": model, "messages": [dict(message) for message in messages], "max_tokens": max_tokens}
    response = await asyncio.wait_for(_sent(fields, timeout_seconds, payer), timeout_seconds)
    choice, usage = response.choices[0], getattr(response, "usage", None)
    cost = (getattr(response, "_hidden_params", None) or {}).get(COST)
    return Answer(
        text=choice.message.content or "",
        is_whole=choice.finish_reason != "length",
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        dollars=cost if isinstance(cost, (int, float)) else None,
    )


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
        data |= {"timeout": timeout_seconds, **ONCE}
        return await proxy_server.llm_router.acompletion(**data)
    except (Exception, asyncio.CancelledError) as error:
        failure = error if isinstance(error, Exception) else TimeoutError("the summary was not waited for")
        told = logging.post_call_failure_hook(request_data=data, original_exception=failure, user_api_key_dict=payer)
        with suppress(asyncio.TimeoutError):  # the failure itself is what the caller is told
            await asyncio.wait_for(told, FAILURE_HOOK_SECONDS)
        raise
