"""A decision is made with the summaries that are known, and says which form its compaction has."""

from dataclasses import replace

from engine_requests import COUNTER, decided, session, to

from ctx_hooks.addons.summaries.stored import conversation_key
from ctx_hooks.attempts.request import counted_history
from ctx_hooks.compaction.summary.model_written import Summaries, prefixes
from ctx_hooks.compaction.summary.model_written import WrittenSummary as Written

REQUEST = session(turns=40)
TARGET = to(4_000, summary={"model": "small"})
TEXT = "## Goal\nTune the zebra piano."


def known_summaries():
    key = conversation_key(REQUEST.messages, "ann", TARGET.policy.summary)
    digests = prefixes(counted_history(REQUEST, COUNTER), key.encode())
    return Summaries(key, {digests[9].hex(): Written(digests[9].hex(), 9, TEXT)}, {})


def test_attempt_names_the_summary_that_it_sends():
    summaries = known_summaries()
    decision, attempt = decided(REQUEST, replace(TARGET, summaries=summaries))
    assert "> Tune the zebra piano." in str(decision.changes)
    assert attempt.choice.prefix in summaries.written
    assert attempt.sent_tokens <= 4_000


def test_earlier_choice_of_summary_applies():
    summaries = known_summaries()
    _, attempt = decided(REQUEST, replace(TARGET, summaries=summaries))
    chosen = replace(summaries, chosen={attempt.choice.compaction: ""})
    decision, again = decided(REQUEST, replace(TARGET, summaries=chosen))
    assert decision.changes == decided(REQUEST, TARGET)[0].changes
    assert again.choice == replace(attempt.choice, prefix="")
