"""A share of the conversations is enforced: always the same ones, and none where the share is a mistake."""

import pytest
from strategies import FIELDS, every_format, spoken

from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.litellm_compat.identity import with_request_id
from ctx_hooks.policy.loading import settings_of
from ctx_hooks.policy.resolve import Caller, Policies
from ctx_hooks.policy.settings import Settings
from ctx_hooks.request import target
from ctx_hooks.request.request import Request
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.telemetry.listeners import on


def resolved(raw):
    settings, wrong = settings_of(raw)
    return Policies(settings).resolve(Caller(team_names=("t",))), wrong


@pytest.mark.parametrize(("share", "enforced"), [("10%", 0.1), ("0.5 %", 0.005), ("0%", 0.0), ("99.9%", 0.999)])
def test_sessions_below_the_share_are_enforced_and_all_others_observed(share, enforced):
    found, wrong = resolved({"defaults": {"mode": {"enforce": share}}})
    assert (found.policy.mode, found.enforced_share, wrong) == ("observe", share, [])
    assert found.as_part_of(enforced + 1e-9).policy.mode == "observe"
    assert found.as_part_of(0.999_999).policy.mode == "observe"
    assert not enforced or found.as_part_of(enforced - 1e-9).policy.mode == "enforce"


@pytest.mark.parametrize(
    ("mode", "left"),
    [
        ("10%", "observe"), ({"enforce": 10}, "observe"), ({"enforce": 0.1}, "observe"), ({"enforce": "110%"}, "observe"),
        ({"enforce": "100%"}, "observe"), ({"enforc": "10%"}, "observe"), ({"observe": "90%"}, "observe"),
        ({"enforce": "10%", "observe": "90%"}, "observe"), ({"enforce": "10%", False: 1}, "off"), ({}, "observe"),
        ({"enforce": ["10%"]}, "observe"), ({"enforce": None}, "observe"), ("enforce: 10%", "observe"), ("%", "observe"),
        ("ten%", "observe"), ("enforce 0.1", "observe"), ("100%", "observe"), ("0ff", "observe"),
    ],
)  # fmt: skip
def test_a_share_that_is_a_mistake_enforces_nothing_and_is_reported(mode, left):
    found, wrong = resolved({"defaults": {"mode": mode}})
    assert (found.policy.mode, found.enforced_share, found.as_part_of(0.0).policy.mode) == (left, "", left)
    assert any(".defaults.mode" in line for line in wrong)


SHARED = {"mode": {"enforce": "10%"}}


@pytest.mark.parametrize(
    "raw",
    [
        {"config": SHARED}, {"defaults": {"settings": SHARED}}, {"groups": {"t": SHARED}}, {"defaults": SHARED["mode"]},
        SHARED["mode"], {"teams": {"t": {"enforced": "10%"}}}, {"defaults": {"enforce": False}},
    ],
)  # fmt: skip
def test_a_share_in_a_wrong_place_enforces_nothing(raw):
    assert resolved(raw)[0].as_part_of(0.0).policy.mode in ("observe", "off")


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"defaults": SHARED, "teams": {"t": {"mode": "observe"}}}, ("observe", "")),
        ({"defaults": SHARED, "teams": {"t": {"mode": "off"}}}, ("off", "")),
        ({"defaults": SHARED, "teams": {"t": {"mode": "enforce"}}}, ("enforce", "")),
        ({"defaults": SHARED, "teams": {"t": {"mode": "obzerve"}}}, ("observe", "")),
        ({"defaults": "off", "teams": {"t": SHARED}}, ("observe", "10%")),
        ({"defaults": {**SHARED, "locked": ["mode"]}, "teams": {"t": {"mode": "enforce"}}}, ("observe", "10%")),
        ({"policies": {"p": SHARED}, "teams": {"t": {"policy": "p", "language": "zh"}}}, ("observe", "10%")),
        ({"defaults": SHARED, "teams": {"t": {"languag": "zh"}}}, ("observe", "")),
    ],
)
def test_a_share_is_a_mode_like_every_other_in_scopes_locks_and_policies(raw, expected):
    found, _ = resolved(raw)
    assert (found.policy.mode, found.enforced_share) == expected


def request_of(fmt, text, **fields):
    later = [spoken(fmt, "assistant", "Yes."), spoken(fmt, "user", "And now?")]
    return {"model": "gpt", FIELDS[fmt]: [spoken(fmt, "user", text), *later], "metadata": {}, **fields}


@every_format
def test_a_session_lies_where_its_tenant_and_its_beginning_put_it_in_each_of_its_requests(fmt):
    first = request_of(fmt, "Mend the test.")
    longer = {**first, FIELDS[fmt]: [*first[FIELDS[fmt]], spoken(fmt, "user", "Again.")]}
    assert Call(first).session_digits == Call(longer).session_digits
    assert Call(first).session_digits != Call(request_of(fmt, "Mend the tests.")).session_digits
    translated = {**with_request_id(first), FIELDS[fmt]: [spoken(fmt, "user", "What is left of it")]}
    assert Call(translated).session_digits == Call(first).session_digits


@every_format
def test_sessions_that_begin_with_the_same_instructions_are_told_apart_by_what_is_asked(fmt):
    def digits(task, *later):
        items = [spoken(fmt, "user", text) for text in ("Rules of the project. " * 300, task)]
        answers = [spoken(fmt, "assistant", "Yes."), *(spoken(fmt, "user", text) for text in later)] if later else []
        return Call({"model": "gpt", FIELDS[fmt]: [*items, *answers], "metadata": {}}).session_digits

    assert digits("Mend the test.") == digits("Mend the test.", "And now?") == digits("Mend the test.", "Again.")
    assert digits("Mend the test.") != digits("Write the page.")


def test_it_is_the_same_in_every_process():
    assert Call(request_of("openai-chat", "Mend the test.")).session_digits == "4b24"


def test_a_tenth_of_many_sessions_is_enforced_whoever_asks():
    policies = Policies(settings_of({"defaults": SHARED})[0])
    targets = [target.of_group(Call(request_of("openai-chat", f"Task {n}")), policies) for n in range(3_000)]
    enforced = [to for to in targets if to.policy.mode == "enforce"]
    assert 240 < len(enforced) < 360
    assert {to.enforced_share for to in targets} == {"10%"}


@pytest.mark.parametrize("items", [
    "text", [], [None], {"content": 1.0}, [{"role": "user"}], [{"role": "user", "content": [{"text": 5}, None]}], 7,
])  # fmt: skip
def test_whatever_a_request_holds_it_lies_somewhere(items):
    assert int(Call({"model": "m", "messages": items, "metadata": {}}).session_digits, 16) < 65_536


async def test_an_enforced_session_stays_so_until_its_answer_and_its_events_say_the_group():
    flow, heard = RequestFlow(Settings(defaults={"mode": {"enforce": "10%"}})), []
    end = on("decision", heard.append)
    for n in range(40):
        fields = request_of("openai-chat", f"Task {n}")
        sent = await flow.before_choice(Request("openai-chat", fields))
        cut = {**sent, "messages": [spoken("openai-chat", "user", "What is left of it")]}
        request = Request("openai-chat", cut)
        await flow.before_attempt(request, target.of_attempt(request.call, flow.policies, 0))
        expected = target.of_group(Call(fields), flow.policies).policy.mode
        assert (heard[-1].mode, heard[-1].call.rollout) == (expected, "10%")
        assert heard[-1].call.session == Call(fields).session_digits
    end()
    assert {event.mode for event in heard} == {"enforce", "observe"}
