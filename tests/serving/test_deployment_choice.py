"""Where the policy prefers it, the Router chooses among the deployments that hold a request whole, and loses none that it
may need."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from engine_requests import attempted

from ctx_hooks.engine.decision import Compressed, Untouched
from ctx_hooks.hook import CtxHooks
from ctx_hooks.learning.attempts import Known
from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.litellm_compat.identity import with_request_id
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.loading import load_settings
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.policy.settings import Policy, Settings
from ctx_hooks.request import request as requests
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline
from ctx_hooks.serving.deciding import Deciding
from ctx_hooks.serving.deployment_choice import Option, best_of, preferred
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window

MODEL = "openai/gpt-4o"
FORMATS = ("openai-chat", "anthropic", "openai-responses")


def holding(**fields):
    """Return policies by which the deployments that hold a request are preferred."""
    return Policies(load_settings({"defaults": {"deployment_choice": "holds_request", **fields}})[0])


HOLDS = holding()
OVERFLOW = Overflow("input", "x", 30_000, 37_000)
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


def session(fmt="openai-chat", turns=30, seed=0, **fields):
    """Return a session; 30 turns are about 37,000 tokens."""
    return Request(fmt, with_request_id({**agent_session(fmt, turns=turns, seed=seed), **fields}))


def pictured():
    request = session()
    request.fields["messages"].append({"role": "user", "content": [PICTURE]})
    return request


def small():
    return Request("openai-chat", with_request_id({"messages": [{"role": "user", "content": "hi"}]}))


def listed(*windows, model=MODEL):
    """Return the Router's entries of deployments with these windows, which are their ids as well."""
    return [{"litellm_params": {"model": model}, "model_info": {"id": f"d{w}", "max_input_tokens": w}} for w in windows]


def with_params(entry, **params):
    return {**entry, "litellm_params": {**entry["litellm_params"], **params}}


def refused_by(runner, request, window, sent=37_000):
    """Note that the deployment with `window` has refused the request."""
    attempt = attempted(window, sent, deployment=f"d{window}:{MODEL}", tenant="nobody")
    attempts = runner.running.open(Call(request.fields).request_id).attempts
    attempts.sent(attempt)
    attempts.failed(OVERFLOW)


async def chosen(request, entries, policies=HOLDS, flow=None):
    flow = flow or RequestFlow()
    flow.policies = policies
    return await preferred(request, entries, flow)


async def windows_left(request, entries, policies=HOLDS, runner=None):
    left = await chosen(request, entries, policies, runner)
    return [entry["model_info"]["max_input_tokens"] for entry in left]


class TestWhatHoldsTheRequest:
    @pytest.mark.parametrize("fmt", FORMATS)
    async def test_is_all_that_is_left_of_a_group_with_different_windows(self, fmt):
        assert await windows_left(session(fmt), listed(8_000, 200_000, 1_000_000)) == [200_000, 1_000_000]

    async def test_where_none_does_it_is_the_largest(self):
        assert await windows_left(session(), listed(8_000, 16_000, 16_000)) == [16_000, 16_000]

    async def test_where_all_do_it_is_all_of_them(self):
        assert await windows_left(session(), listed(100_000, 200_000)) == [100_000, 200_000]

    async def test_the_requested_output_is_room_that_it_needs_as_well(self):
        entries = listed(60_000, 200_000)
        assert await windows_left(session(), entries) == [60_000, 200_000]
        assert await windows_left(session(max_tokens=40_000), entries) == [200_000]

    async def test_the_reserve_for_long_messages_is_too(self):
        long = [{"role": "user", "content": f"{n} " + "word " * 4_000} for n in range(30)]
        request = Request("openai-chat", with_request_id({"messages": long}))
        assert await windows_left(request, listed(140_000, 1_000_000)) == [140_000, 1_000_000]
        assert await windows_left(request, listed(140_000, 1_000_000), holding(reserve="dynamic")) == [1_000_000]

    async def test_a_request_that_is_too_large_to_count_goes_to_the_largest(self, monkeypatch):
        monkeypatch.setattr(requests, "MOST_REQUEST_BYTES", 1_000)
        assert await windows_left(session(), listed(8_000, 200_000, 1_000_000)) == [1_000_000]


class TestTheRouterChoosesFromAll:
    @pytest.mark.parametrize("policies", [
        Policies(Settings()), holding(mode="off"), holding(compression_timeout_seconds=1e-9),
    ], ids=["by default", "off", "where counting takes too long"])  # fmt: skip
    async def test_by_default_where_the_plugin_is_off_and_where_counting_takes_too_long(self, policies):
        entries = listed(8_000, 1_000_000)
        assert await chosen(session(), entries, policies) is entries

    async def test_where_one_deployments_own_policy_says_so(self):
        entries = listed(8_000, 1_000_000)
        entries[0]["model_info"]["ctx_hooks"] = {"deployment_choice": "any"}
        assert await chosen(session(), entries) is entries

    async def test_where_the_provider_keeps_a_part_of_the_history(self):
        entries = listed(8_000, 1_000_000)
        request = session("openai-responses", previous_response_id="resp_1")
        assert await chosen(request, entries) is entries

    @pytest.mark.parametrize("entries", [[], listed(8_000), listed(8_000, 8_000)], ids=["none", "one", "alike"])
    async def test_where_there_is_nothing_to_choose(self, entries):
        hook = CtxHooks()
        hook.flow.policies = HOLDS
        fields = {**session().fields, "litellm_logging_obj": SimpleNamespace(call_type="acompletion")}
        assert await hook.async_filter_deployments(entries, fields.pop("messages"), fields) is entries

    async def test_where_what_is_sent_is_no_conversation(self):
        entries = listed(8_000, 1_000_000)
        request = Request("openai-chat", {"messages": ["no message" * 10_000]})
        assert await chosen(request, entries) is entries


class TestCounting:
    async def test_what_fits_every_deployment_by_its_size_is_not_counted(self, monkeypatch):
        monkeypatch.setattr(Deciding, "off_loop", None)
        entries = listed(8_000, 1_000_000)
        assert await chosen(small(), entries) is entries

    async def test_a_large_request_is_counted_in_a_thread(self, monkeypatch):
        threads, count = [], requests.Request.messages.func
        noted = property(lambda self: threads.append(threading.current_thread()) or count(self))
        monkeypatch.setattr(requests.Request, "messages", noted)
        assert await windows_left(session(), listed(8_000, 1_000_000)) == [1_000_000]
        assert threads
        assert threading.main_thread() not in threads

    def test_the_deadline_holds(self):
        window = Window(8_000, "model_info")
        option = Option(listed(8_000)[0], Target(MODEL, "d", window, Policy(), "r"), Known(window))
        with pytest.raises(CompressionTimeoutError):
            best_of(session(seed=1), [option], Deadline(0))


class TestWhatTheRouterFiltersByAfterwards:
    @pytest.mark.parametrize("field", ["tags", "tag_regex"])
    async def test_of_every_tag_a_deployment_is_left(self, field):
        plain = listed(8_000, 16_000, 1_000_000)
        entries = [with_params(e, **{field: [t]}) for e, t in zip(plain, ("free", "free", "paid"), strict=True)]
        assert await windows_left(session(), entries) == [16_000, 1_000_000]

    async def test_the_window_goes_before_the_order(self):
        entries = listed(8_000, 1_000_000)
        for order, entry in enumerate(entries, 1):
            entry["litellm_params"]["order"] = order
        assert await windows_left(session(), entries) == [1_000_000]

    @pytest.mark.parametrize("fields", [
        {"_excluded_deployment_ids": ["d1000000"]}, {"_retry_skipped_deployment_ids": ("d1000000",)}, {"_target_order": 1},
        {"metadata": {"_routing_plugin_candidate_models": ["openai/0"]}},
    ], ids=lambda fields: next(iter(fields)))  # fmt: skip
    async def test_what_the_router_narrows_itself_is_left_whole(self, fields):
        entries = listed(8_000, 16_000, 1_000_000)
        assert await chosen(session(**fields), entries) is entries

    async def test_of_those_that_take_images_one_is_left_to_a_request_that_has_one(self):
        entries = listed(8_000, 16_000, 1_000_000)
        entries[-1]["model_info"]["supports_vision"] = False
        assert await windows_left(session(), entries) == [1_000_000]
        assert await windows_left(pictured(), entries) == [16_000, 1_000_000]


class TestARetry:
    async def test_goes_to_another_deployment_than_the_one_that_refused_where_that_holds_the_request(self):
        runner, request = RequestFlow(), session()
        refused_by(runner, request, 200_000)
        assert await windows_left(request, listed(200_000, 1_000_000), runner=runner) == [1_000_000]

    async def test_goes_to_the_largest_where_no_other_holds_it(self):
        runner, request = RequestFlow(), session()
        refused_by(runner, request, 200_000)
        assert await windows_left(request, listed(8_000, 200_000), runner=runner) == [200_000]

    @pytest.mark.parametrize(("window", "fields", "expected"), [
        (1_000_000, {}, Untouched), (200_000, {}, Compressed), (1_000_000, {"deployment": f"d200000:{MODEL}"}, Compressed),
        (1_000_000, {"policy": Policy(deployment_choice="any")}, Compressed),
    ], ids=["a larger window", "no larger one", "the one that refused, whatever its window", "by default"])  # fmt: skip
    async def test_sends_the_request_as_it_came_only_to_another_with_a_larger_window(self, window, fields, expected):
        target = replace(target_of(window), **fields)
        assert isinstance(await retried(RequestFlow(), 200_000, target), expected)

    async def test_elsewhere_still_teaches_the_limit_of_what_refused_without_being_counted(self):
        runner, request = RequestFlow(), session()
        await retried(runner, 40_000, target_of(1_000_000), sent=None)
        assert await windows_left(request, listed(40_000, 1_000_000), runner=runner) == [1_000_000]


def target_of(window):
    return Target(MODEL, "another", Window(window, "model_info"), Policy(deployment_choice="holds_request"), "")


async def retried(runner, refused, to, sent=37_000):
    """Return what a retry sends to a target after the deployment with the window `refused` has refused."""
    request = session()
    refused_by(runner, request, refused, sent)
    to = replace(to, request_id=request.call.request_id, attempt=1)
    return await runner.deciding.decide(request, runner.running.of(to.request_id).numbered(to))
