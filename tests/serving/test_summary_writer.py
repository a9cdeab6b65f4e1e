"""Work for a summary ends with the time that the policy gives it, on threads as well as at the model."""

from __future__ import annotations

import pytest

from ctx_hooks.compaction.summary.model_written import SummaryTask
from ctx_hooks.formats import CODECS
from ctx_hooks.policy.summary_settings import SummarySettings
from ctx_hooks.runtime.worker import Workers
from ctx_hooks.serving.summary_writer import Writing, write

MESSAGES = CODECS["openai-chat"].read([{"role": "user", "content": "Tune the piano."}]).messages
TASK = SummaryTask("5f2c", len(MESSAGES), "openai-chat", MESSAGES, "")


class WatchedWorkers(Workers):
    """Threads that note how long the work may take."""

    def __init__(self):
        super().__init__()
        self.seconds_left = []

    async def run(self, work, deadline):
        self.seconds_left.append(deadline.seconds_left)
        return await super().run(work, deadline)


async def taken_over():
    return False


@pytest.mark.parametrize("timeout_seconds", [5.0, 60.0])
async def test_a_thread_works_no_longer_on_a_summary_than_the_policy_says(timeout_seconds):
    workers, writing = WatchedWorkers(), Writing()
    settings = SummarySettings(model="gpt-4o-mini", timeout_seconds=timeout_seconds)
    await write(writing, TASK, settings, None, workers, taken_over)
    assert (writing.outcome, writing.reason) == ("failed", "its lease was over")
    (seconds_left,) = workers.seconds_left
    assert seconds_left is not None
    assert 0 < seconds_left <= timeout_seconds
