"""Work for a summary ends in the time of the policy, and its parts are counted as the model that writes it counts."""

import time

import pytest

from ctx_hooks.addons.summaries import writer
from ctx_hooks.addons.summaries.candidates import Asking, SummaryTask
from ctx_hooks.addons.summaries.writer import Writing, write
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.learning.learned import Learned
from ctx_hooks.learning.observations import Observation
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.litellm_compat.deployments import deployment_key_of
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.worker import Workers
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.tokens.budget import Window

TO = Target("gpt-4o", "deployment", Window(128_000, "model_info"), Policy(), "r1", "ann")


class WatchedWorkers(Workers):
    """Threads that note how long the work may take, and what it has returned."""

    def __init__(self):
        super().__init__()
        self.seconds_left, self.returned = [], []

    async def run(self, tenant, work, deadline):
        self.seconds_left.append(deadline.seconds_left)
        self.returned.append(await super().run(tenant, work, deadline))
        return self.returned[-1]


async def taken_over():
    return False


@pytest.fixture
def workers(monkeypatch):
    """Let each call of a test have its own threads, which it can ask afterwards."""

    def watched():
        found = WatchedWorkers()
        monkeypatch.setattr(writer, "pool", found)
        return found

    return watched


async def written(said, settings, learned, workers):
    """Write a summary of what a user said until another worker takes the flight over, and return what the threads did."""
    messages = [{"role": "user", "content": text} for text in said]
    task = SummaryTask("5f2c", len(said), "openai-chat", WIRE_FORMATS["openai-chat"].read(messages).messages, "")
    asking = Asking(Request("openai-chat", {"messages": messages}), TO, settings, "key", None, 1)
    watched, writing = workers(), Writing()
    await write(writing, task, asking, learned, taken_over)
    assert (writing.outcome, writing.reason) == ("failed", "its lease was over")
    return watched


@pytest.mark.parametrize("timeout_seconds", [5.0, 60.0])
async def test_a_thread_works_no_longer_on_a_summary_than_the_policy_says(timeout_seconds, workers):
    settings = SummarySettings(model="gpt-4o-mini", timeout_seconds=timeout_seconds)
    (seconds_left,) = (await written(["Tune the piano."], settings, Learned(SharedStore()), workers)).seconds_left
    assert seconds_left is not None
    assert 0 < seconds_left <= timeout_seconds


@pytest.mark.parametrize(("kind", "text"), [("ratios", "It reads the file."), ("other_ratios", "ファイルを読み込む。")])
async def test_parts_are_as_large_as_what_was_learned_of_the_model_lets_them_be(kind, text, workers):
    learned, settings = Learned(SharedStore()), SummarySettings(model="gpt-4", max_tokens=200)
    said = [f"{n} " + text * 25 for n in range(30)]
    (parts,) = (await written(said, settings, learned, workers)).returned
    await learned.learn(deployment_key_of(Deployment("gpt-4", {})), {(kind, "ann"): Observation((2.0, 2.0), time.time())})
    (smaller,) = (await written(said, settings, learned, workers)).returned
    assert len(smaller) > len(parts)
    assert "\n".join(smaller) == "\n".join(parts)
