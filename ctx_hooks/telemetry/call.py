"""Whose request an event is about."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CallNames:
    """The names of a call: whose request it is, and where it goes.

    Attributes:
        request_id: the id that this process has given the request; all its attempts and its answer have it.
        call_id: LiteLLM's call id, which a caller may choose.
        model_group: the name that the caller asked for.
        deployment: the key of what is learned of the deployment: the Router's id and the model.
        model: the provider's model.
        team_id: LiteLLM's id of the team, "" for none.
        team_alias: its alias, "" for none.
        key_alias: the alias of the virtual key, "" for none.
        organization_id: LiteLLM's id of the organization, "" for none.
        route: the call type of LiteLLM, as `acompletion`.
        client: the name and version that the user agent begins with, "" where there is none.
    """

    request_id: str = ""
    call_id: str = ""
    model_group: str = ""
    deployment: str = ""
    model: str = ""
    team_id: str = ""
    team_alias: str = ""
    key_alias: str = ""
    organization_id: str = ""
    route: str = ""
    client: str = ""


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """What every event about one request has.

    Attributes:
        name: the event's name.
        time_seconds: when, in epoch seconds.
        call: whose request it is, and where it goes or went.
    """

    name: str
    time_seconds: float
    call: CallNames
