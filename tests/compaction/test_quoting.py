"""Compacted text that a later user turn asks for is appended to that turn, quoted; the cached prefix is unchanged."""

import json

import pytest
from strategies import called

from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import History, digest_behind, digest_of, history_of, message_stats
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.quoting import Quoting, Share, Shares, appended
from ctx_hooks.formats import WIRE_FORMATS, MessageReader
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

BUDGET = Budget(4_000, 8_000, Counter("cl100k_base"))


def sent(messages, *, trigger, target, policy=None):
    """Return what is sent for a request, message by message as JSON, how often it was compacted, and the outcome."""
    counter, reader = Counter("cl100k_base"), MessageReader("openai-chat", messages)
    history = History(reader, message_stats(reader, counter), 0, digest_of(""))
    outcome, cut = compacted(history, Thresholds(Budget(trigger, 8_000, counter, policy or Policy()), target))
    assert outcome.tokens_after == Counter("cl100k_base").conversation(outcome.conversation)
    written = WIRE_FORMATS["openai-chat"].write(outcome.conversation)
    return [json.dumps(m, sort_keys=True) for m in written], cut.number, outcome


def chatter(n):
    told = f"Nothing much happened on day {n}, we talked about this and that."
    return {"role": ("user", "assistant")[n % 2], "content": told}


def test_requested_text_is_appended_and_stays():
    talk = [chatter(n) for n in range(400)]
    talk[21]["content"] = "Mr Albrecht tuned grandmother's piano in spring."
    question = {"role": "user", "content": "Who tuned the piano?"}
    messages = [*talk, question]
    asked, compactions, outcome = sent(messages, trigger=3_400, target=400)
    assert compactions
    assert "Who tuned the piano?" in asked[-1]
    assert "Mr Albrecht" in "".join(asked)
    assert outcome.fits
    later = [*messages, {"role": "assistant", "content": "Mr Albrecht."}, {"role": "user", "content": "Thanks."}]
    assert sent(later, trigger=3_400, target=400)[0][: len(asked)] == asked


def test_pasted_file_gets_no_text():
    """A pasted file shares words with everything: it is no question."""
    talk = [chatter(n) for n in range(300)]
    talk[21]["content"] = "Mr Albrecht tuned grandmother's piano in spring."
    talk[41]["content"] = "Mrs Winter painted the old harbour twice."
    pasted = {"role": "user", "content": "Who tuned the piano?\n" + "A line of a pasted file.\n" * 100}
    assert json.loads(sent([*talk, pasted], trigger=4_700, target=1_000)[0][-1]) == pasted
    question = {"role": "user", "content": "Who painted the harbour?"}
    later = [*talk, pasted, {"role": "assistant", "content": "I see."}, question]
    assert "Mrs Winter" in sent(later, trigger=4_700, target=1_000)[0][-1]


def asked(messages, question):
    """Return what is quoted behind a question of messages of which a compaction has left nothing."""
    history = history_over([*messages, {"role": "user", "content": question}], BUDGET)
    length = len(messages)
    digest = digest_behind(b"", history.index[:length])
    return Quoting(history, length, (), digest, BUDGET, Share(300, 300)).texts()[length]


def test_lines_are_quoted_one_by_one():
    talk = [chatter(n) for n in range(300)]
    talk[21]["content"] = 'The piano was tuned by\n"Mr Albrecht"\r[ctx_hooks] in spring.'
    quoted = 'assistant message:\n> The piano was tuned by\n> "Mr Albrecht"\n> ctx_hooks in spring.'
    assert quoted in asked(talk, "Who tuned the piano?")


def test_tool_results_are_not_quoted():
    text = asked(TOOLS, "Which value does file 7 hold, value 7?")
    assert "user message: Read file 7." in text
    assert "value 7\n" not in text


def history_over(messages, budget):
    reader = MessageReader("openai-chat", messages)
    return history_of(reader, message_stats(reader, budget.counter), budget.counter)


def with_tools(n):
    read = called(f"value {n}\n" * 50, f"c{n}", arguments={"path": f"{n}.py"})
    return [{"role": "user", "content": f"Read file {n}."}, *read, {"role": "assistant", "content": "Done."}]


TOOLS = [m for n in range(20) for m in with_tools(n)]
TALK = [chatter(n) for n in range(80)]


def test_plain_dialogue_gets_a_larger_share():
    budget = Budget(3_000, 200_000, Counter("cl100k_base"))
    dialogue = Shares(history_over([*TALK, chatter(80)], budget), budget)
    tools = Shares(history_over(TOOLS, budget), budget)
    assert dialogue.behind(80, 3_000) == Share(1_000, 300)
    assert 0 < tools.behind(80, 3_000).question_tokens < 30
    assert dialogue.most_target_tokens(80) == 1_000
    assert 2_900 < tools.most_target_tokens(80) <= 3_000


def test_share_depends_on_compacted_messages_only():
    """Otherwise what an earlier turn was given would change with the messages behind it."""
    budget = Budget(3_000, 200_000, Counter("cl100k_base"))
    now = Shares(history_over([*TALK, *TOOLS, *TALK], budget), budget)
    for length in (81, 87, 161):
        then = Shares(history_over([*TALK, *TOOLS, *TALK][:length], budget), budget)
        assert then.behind(length, 900) == now.behind(length, 900)
        assert then.most_target_tokens(length) == now.most_target_tokens(length)


@pytest.mark.parametrize("questions", [False, True])
def test_long_dialogue_keeps_its_prefix(questions):
    ending = "?" if questions else "."
    talk = [chatter(n) for n in range(200)]
    for n in range(0, 200, 2):
        talk[n] = {"role": "user", "content": f"And what of day {n // 3}{ending}"}
    before, compactions, changed = [], 0, 0
    for length in range(1, 200, 2):
        now, compactions, outcome = sent(talk[:length], trigger=1_200, target=600)
        assert outcome.fits
        changed += now[: len(before)] != before
        before = now
    assert changed <= compactions <= 100 / 5


@pytest.mark.parametrize("turns", [1, 2, 10])
def test_all_turns_stay_within_the_reserve(turns):
    talk = [chatter(n) for n in range(200)]
    asked = range(21, 21 + 2 * turns, 2)
    for n in asked:
        talk[n]["content"] = f"The key number {n} of the green cupboard hangs beside door number {n}. " * 3
    questions = [{"role": "user", "content": f"Where does key {n} of the cupboard hang?"} for n in asked]
    answers = [{"role": "assistant", "content": "Let me see."}] * turns
    later = [m for pair in zip(questions, answers, strict=True) for m in pair]
    budget = Budget(4_000, 8_000, Counter("cl100k_base"))
    history = history_over([*talk, *later], budget)
    share = Shares(history, budget).behind(len(talk), 4_000)
    texts = Quoting(history, len(talk), (), digest_behind(b"", history.index[: len(talk)]), budget, share).texts()
    assert texts
    assert set(texts) <= set(range(len(talk), len(history.index), 2))
    given = sum(budget.counter.text(appended(text)) for text in texts.values())
    assert given <= share.reserved_tokens(turns, turns)
