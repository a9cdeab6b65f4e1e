"""A further call, on the same account, for a request that the proxy has already checked and routed.

What LiteLLM 1.103 to 1.110 do, and the consequences:

1. The fields that the proxy's hooks get behind a call are those that it gave the Router, with the changes of all pre-call
   hooks: the Router takes them again. `deployment` and `_litellm_client_requested_model` the proxy adds behind the call.
2. `litellm_logging_obj` is one call's: it keeps that call's times, stream and answer, and logs once. `function_setup` makes
   another, as the proxy does; without one the Router's filters of deployments do not know what kind of call it is.
3. The rate limiter `parallel_request_limiter_v3` gives a place back when the call is logged whose `litellm_call_id` took it:
   a further call has an id of its own.
4. Router and proxy write to the request's metadata in place: a further call has a copy. Spend is attributed by what of it
   begins with `user_api_key`, so that stays.
5. The budget reservation is the first call's. It is in the metadata twice: under `user_api_key_budget_reservation` and in
   the `UserAPIKeyAuth` under `user_api_key_auth`. With it a further call would settle what the first has reserved (LiteLLM's
   `internal_call_metadata.py` leaves it out of its own internal calls for that).
"""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias
from uuid import uuid4

from ctx_hooks.litellm_compat.call import REQUEST_KEY, Call
from ctx_hooks.litellm_compat.deployments import proxy_router
from ctx_hooks.litellm_compat.identity import with_request_id
from ctx_hooks.litellm_compat.logged import LOGGED, SAVINGS, Figures
from ctx_hooks.litellm_compat.registry import FURTHER_CALL, RULES, SETUP, installed
from ctx_hooks.request.request import Request, format_of

Ask: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], Awaitable[tuple[dict[str, Any], Any]]]
"""Repeats a call with changes to the request's fields; returns the new call's fields, and its answer or stream."""

OF_THE_FIRST = frozenset({"litellm_logging_obj", "litellm_call_id", "deployment", "_litellm_client_requested_model"})
RESERVATION = "user_api_key_budget_reservation"


def further_fields(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a further call: the first call's with changes, without those that belong only to the first."""
    own = {name: value for name, value in fields.items() if name not in OF_THE_FIRST}
    first = Call(fields)
    name = "litellm_metadata" if fields.get("litellm_metadata") is first.metadata else "metadata"
    return {**own, **changes, name: _metadata(first), "litellm_call_id": str(uuid4())}


def asking(fitted_before_choice: Callable[[Request], Awaitable[dict[str, Any]]]) -> Ask:
    """Return a function that calls the proxy's Router again for a prepared request; its retries stay unchanged."""

    async def ask(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        data = with_request_id(further_fields(fields, changes))
        request = Request(format_of(data), data)
        data, route = await fitted_before_choice(request), request.wire.call_types[-1]
        logging, called = SETUP.find()(
            original_function=route,
            rules_obj=RULES.find()(),
            start_time=datetime.now(),  # noqa: DTZ005 - LiteLLM subtracts it from its own, which have no zone
            **data,
        )
        logged = {"litellm_logging_obj": logging}
        return {**data, **logged}, await getattr(proxy_router(), route)(**{**called, **logged})

    return ask


def can_call_again() -> bool:
    """Whether this LiteLLM has what a further call needs."""
    return not any(name.fault for name in FURTHER_CALL)


def _metadata(first: Call) -> dict[str, Any]:
    metadata = {name: value for name, value in first.metadata.items() if name != RESERVATION}
    if getattr(first.auth, "budget_reservation", None) is not None:
        metadata["user_api_key_auth"] = first.auth.model_copy(update={"budget_reservation": None})
    if isinstance(metadata.get(SAVINGS), Figures):
        del metadata[SAVINGS]
    logged = metadata.get(LOGGED)
    if isinstance(logged, Mapping) and isinstance(logged.get(REQUEST_KEY), Figures):
        metadata[LOGGED] = {name: value for name, value in logged.items() if name != REQUEST_KEY}
    return metadata


FIRST_WHOLE = (1, 106)
"""If LiteLLM before 1.106 translates a stream from another API, they repeat the thinking in the items that the client sends
back. The provider then refuses these ("`thinking` blocks cannot be modified"). They also give two items one number. 1.106
was seen to do neither.
"""


def takes_items_back() -> bool:
    """Return whether this LiteLLM translates answers of the Responses API without loss."""
    return installed() >= FIRST_WHOLE
