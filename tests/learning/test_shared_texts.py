"""What workers share by default are figures: no text of a message comes to stand in Redis."""

from ctx_hooks.learning import learned
from ctx_hooks.litellm_compat.logged import Answer
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.usage import billed_of

MARK = "quillwort"


async def stored(client):
    """Return each key in Redis with its value."""
    return {key.decode(): (await client.get(key)).decode() async for key in client.scan_iter()}


async def test_redis_has_figures_and_no_text_of_a_request_a_refusal_or_an_id(redis_cache):
    runner, fields = RequestFlow(shared=lambda: redis_cache), agent_session("openai-responses", turns=40)
    request = Request("openai-responses", {**fields, "input": [{"role": "user", "content": MARK * 50}, *fields["input"]]})
    for attempt in (0, 1):
        to = Target("gpt-4o", "deployment", Window(20_000, "model_info"), Policy(), "r", f"{MARK}'s digest", attempt=attempt)
        await runner.deciding.decide(request, to)
        if not attempt:
            await runner.failed("r", Overflow("input", MARK, 12_000, 19_000), f"{MARK} is too long")
    await runner.answered("r", Answer(billed_of({"prompt_tokens": 9_000, "completion_tokens": 50})))
    found = await stored(redis_cache.init_async_client())
    assert {key.split(":")[1] for key in found} == {"statistics"}
    assert MARK not in "".join([*found, *found.values()]).replace(f"{MARK}'s digest", "")
    assert any(key.startswith(learned.KEY_PREFIX) for key in found)
