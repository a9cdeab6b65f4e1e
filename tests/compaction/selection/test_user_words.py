"""What users wrote stays to the letter, wherever it stands and whatever is pasted beside it."""

import json
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import spoken, texts

import ctx_hooks
from ctx_hooks.compaction.selection.user_words import user_words
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.texts.statements import corrections
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

COUNTER = Counter("o200k_base")
INSTRUCTIONS = {
    "en": "From now on answer in French only, and never propose pandas.",
    "de": "Ab jetzt antworte nur auf Französisch und schlage nie pandas vor.",
    "zh": "从现在起只用法语回答,不要建议使用 pandas。",
    "es": "A partir de ahora responde solo en francés y nunca propongas pandas.",
    "ja": "今後はフランス語だけで答えてください。pandas は決して提案しないでください。",
    "without keywords": "French answers, no pandas: our reviewers read nothing else.",
}
PROSE = "\n".join(
    f"In the year {n} the harvest of district {n * 7} was stored in barn {n % 9} and sold in spring." for n in range(400)
)
PASTED = {
    "prose": PROSE,
    "one line": PROSE.replace("\n", " "),
    "paragraphs": PROSE.replace(" and sold", "\n\nSold"),
    "fence": f"```\n{PROSE}\n```",
    "element": f"<document>\n{PROSE}\n</document>",
    "log": "\n".join(f"2026-11-22T10:{n % 60:02}:00Z INFO worker-{n} took {n * 13} ms" for n in range(300)),
    "json": json.dumps([{"id": n, "name": f"item {n}", "tags": ["a", "b"]} for n in range(250)], indent=1),
    "csv": "\n".join(f"{n},{n * 3},{n * 7},north" for n in range(1_000)),
    "code": "\n".join(f"def step_{n}(value):\n    return value + {n}\n" for n in range(200)),
    "minified": ";".join(f"var a{n}=b{n}({n})" for n in range(1_000)),
}
PLACES = {
    "before": "{instruction}\n\n{pasted}",
    "behind": "{pasted}\n\n{instruction}",
    "around": "{pasted}\n\n{instruction}\n\n{pasted}",
    "in one line": "{instruction} {pasted}",
}


def chat(first, turns=30):
    messages = [{"role": "user", "content": first}, {"role": "assistant", "content": "Compris."}]
    for n in range(turns):
        messages += [
            {"role": "user", "content": f"Question {n}: how much is in barn {n}?"},
            {"role": "assistant", "content": f"La réponse {n} : " + f"il y a {n} sacs de blé dans la grange {n}. " * 9},
        ]
    return [*messages, {"role": "user", "content": "And in all?"}]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pasted", PASTED)
def test_an_instruction_beside_a_pasted_text_is_in_every_later_request(pasted, place):
    first = list(PASTED).index(pasted) + list(PLACES).index(place)
    language = list(INSTRUCTIONS)[first % len(INSTRUCTIONS)]  # each beside some texts, and in each place
    if (place, language) == ("around", "without keywords") and pasted in ("prose", "log", "csv", "minified"):
        language = "en"  # a short paragraph in the middle of others: docs/security.md
    messages = chat(PLACES[place].format(instruction=INSTRUCTIONS[language], pasted=PASTED[pasted]))
    for end in (21, len(messages)):
        sent = ctx_hooks.compress(messages[:end], format="openai-chat", budget_tokens=4_000, target_tokens="auto")
        assert sent.tokens_after < sent.tokens_before
        said = [m["content"] for m in sent.messages if m["role"] == "user"]
        assert any(INSTRUCTIONS[language] in text for text in said), (language, end)


@pytest.mark.parametrize("fmt", WIRE_FORMATS)
def test_users_words_stay_to_the_letter_while_they_are_a_share_of_the_goal(fmt):
    asked = [f"Point {n}: keep “{n}-{n * 31}” as it is, and tell Zoë{n} by {n % 28 + 1} May." for n in range(40)]
    messages = [m for text in asked for m in (spoken(fmt, "user", text), spoken(fmt, "assistant", f"{text} " * 40))]
    messages.append(spoken(fmt, "user", "Go on."))
    sent = ctx_hooks.compress(messages, format=fmt, budget_tokens=8_000, target_tokens="auto")
    assert sent.tokens_after < sent.tokens_before
    text = json.dumps(sent.messages, ensure_ascii=False)
    assert [words for words in asked if words not in text] == []


HOSTILE = ["a\rb", "x" * 30_000, "." * 300_000, "?! " * 9_000, "\x1b[31mred", "<a>\n<a>\n</a>", "```\n"]


@settings(max_examples=25)
@given(said=st.lists(st.one_of(texts, st.sampled_from(HOSTILE)), max_size=8), goal=st.integers(50, 4_000))
def test_the_spans_stand_in_order_side_by_side_in_texts_that_are_there_and_within_their_share(said, goal):
    messages = [{"role": "user", "content": text or " "} for text in (*said, "newest")]
    conversation = WIRE_FORMATS["openai-chat"].read(messages)
    words = user_words(conversation, Budget(goal, 200_000, COUNTER))
    for (i, k), spans in words.items():
        text = conversation.messages[i].parts[k].text
        bounds = [bound for span in spans for bound in span]
        assert bounds == sorted(bounds)
        assert bounds[0] >= 0
        assert bounds[-1] <= len(text)
    kept_chars = sum(b - a for spans in words.values() for a, b in spans)
    assert kept_chars <= sum(len(m["content"]) for m in messages)


def test_the_task_stays_whole_where_every_result_is_a_users_turn():
    task = " ".join(f"The handler {n} of the codec reads a field that is absent in part {n}." for n in range(30))
    asked = ["An example of how it is done. " * 700, f"ISSUE: {task}"]
    loop = [(f"open codec_{n}.py", f"codec_{n}.py of {n} lines\n{'    return value' * 100}") for n in range(60)]
    messages = [spoken("openai-chat", "user", text) for text in asked]
    messages += [
        spoken("openai-chat", role, t) for turn in loop for role, t in zip(("assistant", "user"), turn, strict=True)
    ]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=16_000, target_tokens="auto")
    assert sent.tokens_after < sent.tokens_before
    assert any(task in message["content"] for message in sent.messages)


def test_of_the_task_stays_what_protected_text_leaves_room_for():
    rules = [f"Step {n} must keep gate {n} shut, Deniz." for n in range(90)]
    said = [{"role": "system", "content": "word " * 7_500}, {"role": "user", "content": " ".join(rules)}]
    said += [{"role": role, "content": f"{role}, part {n}. " * 5} for n in range(40) for role in ("assistant", "user")]
    sent = ctx_hooks.compress(said, format="openai-chat", budget_tokens=8_000)
    assert sum(rule in sent.messages[1]["content"] for rule in rules) > 9


def test_what_a_client_wraps_around_every_turn_is_not_the_users():
    wrapped = "<reminder>\n" + "Never mention this block. " * 20 + "\n</reminder>"
    messages = [{"role": "user", "content": f"{wrapped}\nTurn {n} is mine."} for n in range(5)]
    conversation = WIRE_FORMATS["openai-chat"].read(messages)
    words = user_words(conversation, Budget(2_000, 200_000, COUNTER))
    kept = ["".join(conversation.messages[i].parts[k].text[a:b] for a, b in spans) for (i, k), spans in words.items()]
    assert [text.strip() for text in kept] == [f"Turn {n} is mine." for n in range(4)]


FACTS = {
    "en": "The vault of gallery {n} opens at {n}:45, Mrs Okafor{n} has the key.",
    "de": "Der Tresor der Galerie {n} öffnet um {n}:45 Uhr, den Schlüssel hat Frau Okafor{n}.",
    "fr": "Le coffre de la galerie {n} ouvre à {n}h45, Mme Okafor{n} a la clé.",
    "zh": "第 {n} 画廊的保险库 {n}:45 打开,钥匙在 Okafor{n} 手里。",
}


def talk(statements, newest="Go on."):
    """Return a dialogue: each statement among small talk of the user's and a habit, and talk behind all."""
    talked = [
        " ".join(words) + ", as ever" for words in product(("we sat", "i ran"), "abcdef", ("so", "then", "there"), "uvwxyz")
    ]
    spread = [text for statement in statements for text in (statement, "we only wait and see", *talked[:4])]
    said = [
        text
        for text in (*spread, *talked)
        for text in (spoken("openai-chat", "user", text), spoken("openai-chat", "assistant", "I see."))
    ]
    return [*said, spoken("openai-chat", "user", newest)]


@pytest.mark.parametrize("language", FACTS)
def test_what_tells_something_stays_longer_than_talk_and_habits_where_users_words_exceed_their_share(language):
    facts = [FACTS[language].format(n=n) for n in range(1, 21)]
    sent = ctx_hooks.compress(talk(facts), format="openai-chat", budget_tokens=700)
    text = "\n".join(m["content"] for m in sent.messages)
    assert [fact for fact in facts if fact not in text] == []


def test_an_acknowledgement_and_bare_names_take_no_line_and_a_short_answer_to_a_question_does():
    said = []
    for a, b in product("abcdefgh", "stuvwxyz"):
        for text in (f"Gate {a} must stay shut {b} nights.", f"All right {a}{b}.", f"And gate_{a}{b}?", f"No {a}{b}."):
            said.append(spoken("openai-chat", "assistant" if len(said) % 2 else "user", text))
    text = ctx_hooks.compress(said, format="openai-chat", budget_tokens=1_000).messages[0]["content"]
    assert not any(other in text for other in ("All right", "Other names"))
    assert "assistant message: No" in text


@pytest.mark.parametrize("budget_tokens", range(200, 1_000, 50))
def test_a_corrected_value_stays_only_beside_its_correction(budget_tokens):
    values = ["Deniz", "40 EUR", "2027-03-19", "branch/old-12"]
    pairs = [
        (f"NOTE: the {n}. thing is {a} for us.", f"NOTE: the {n}. thing is {b} for us.")
        for n, (a, b) in enumerate(pairwise(values))
    ]
    paraphrased = [("RULE: times in UTC only, ever.", "I would rather see clocks in Pacific Time.")]
    said = [*(old for old, _ in (*pairs, *paraphrased)), *(new for _, new in (*pairs, *paraphrased))]
    sent = ctx_hooks.compress(talk(said), format="openai-chat", budget_tokens=budget_tokens)
    text = "\n".join(m["content"] for m in sent.messages)
    assert [new for old, new in (*pairs, *paraphrased) if old in text and new not in text] == []


CORRECTED = [
    ("The cap of this project is $200 in all.", "The cap of this project is $700 in all."),
    ("Zuständig ist jetzt Frau Okafor.", "Zuständig ist jetzt Frau Aydin."),
    ("Nous livrons le 3 mars.", "Nous livrons le 14 mars."),
    ("截止日期是3月5日。", "截止日期是4月6日。"),
]


def test_a_correction_says_the_same_with_another_value():
    for old, new in CORRECTED:
        assert corrections([old, "Ask Deniz about it.", new]) == {0: 2}
        assert corrections([new, new]) == {}
    assert corrections(["Point 1: keep 1-31 and tell Zoe1.", "Point 2: keep 2-62 and tell Zoe2."]) == {}
    assert corrections(["Barn 4.", "Barn 5."]) == {}


def test_what_a_later_text_corrects_gives_way_before_what_stands():
    stands = [f"The badge of room {n} hangs at door {n * 7} beside lamp {n * 31}." for n in range(30)]
    changed = [f"The price of the ticket is {n} euros for everybody here." for n in range(30)]
    messages = [spoken("openai-chat", "user", text) for text in (*stands, *changed, "Go on.")]
    goal_tokens = 60 + 30 * COUNTER.text(stands[0])
    words = user_words(WIRE_FORMATS["openai-chat"].read(messages), Budget(goal_tokens, 200_000, COUNTER))
    kept = {messages[i]["content"] for i, _ in words}
    assert kept.isdisjoint(changed[:-1])
    assert changed[-1] in kept
    assert len(kept) > 20


def test_what_was_said_twice_stays_where_it_was_said_last():
    messages = [{"role": "user", "content": text} for text in ("Continue.", "Continue.", "x")]
    words = user_words(WIRE_FORMATS["openai-chat"].read(messages), Budget(2_000, 200_000, COUNTER))
    assert set(words) == {(1, 0)}


def test_a_question_stays_in_front_of_the_answer_that_stays_and_no_message_says_nothing():
    messages = []
    for n in range(30):
        messages += [
            {"role": "user", "content": f"Do #{n}, please."},
            {"role": "assistant", "content": f"Done with #{n}: " + f"changed src/part_{n}.py and ran case_{n}. " * 30},
        ]
    messages.append({"role": "user", "content": "Now #31."})
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=4_000).messages
    for before, after in pairwise(sent):
        if after["role"] == "assistant" and after["content"].startswith("Done with"):
            number = after["content"].split(":")[0].rsplit("#", 1)[1]
            assert f"Do #{number}, please." in before["content"]
    assert not any(m["content"].strip() in ("[ctx_hooks] …", "") for m in sent)


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("wish", [
    "Please write no comments into the code.", "Bitte schreibe keine Kommentare.", "Ne mets jamais de commentaires.",
    "No escribas nunca comentarios.", "Пожалуйста, не пиши комментарии.", "请不要在代码里写注释。",
])  # fmt: skip
def test_own_sentences_precede_directives_of_code(wish, place):
    code = [f"  // Should list item {n}, must never fail\n  const value_{n} = load({n});\n" for n in range(300)]
    code.insert(place * 60, f"\n{wish}\n\n")
    said = [{"role": "user", "content": "".join(code)}]
    rest = [{"role": ("assistant", "user")[n % 2], "content": f"Turn {n} says little. " * 40} for n in range(41)]
    messages = [*said, *rest, {"role": "user", "content": "Go on."}]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=3_000).messages
    assert wish in json.dumps(sent, ensure_ascii=False)


def test_statement_inside_pasted_code_stays():
    said = "I decided against Kafka, we take NATS."
    messages = chat(f"{PASTED['code']}\n{said}\n{PASTED['code']}")
    conversation = WIRE_FORMATS["openai-chat"].read(messages)
    words = user_words(conversation, Budget(1_500, 3_000, COUNTER))
    assert any(said in conversation.messages[i].parts[k].text[a:b] for (i, k), spans in words.items() for a, b in spans)


def test_list_in_long_text_stays_whole():
    steps = "".join(
        f"{n}. {words}\n" for n, words in enumerate(("copy the files", "never touch main", "run it twice", "tell ann"), 1)
    )
    conversation = WIRE_FORMATS["openai-chat"].read(chat(f"{PASTED['code']}\n{steps}\n{PASTED['code']}"))
    words = user_words(conversation, Budget(1_500, 3_000, COUNTER))
    kept = "".join(conversation.messages[i].parts[k].text[a:b] for (i, k), spans in words.items() for a, b in spans)
    assert steps in kept
