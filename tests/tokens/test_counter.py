"""Counts are those of the vocabulary; estimates are of the right size."""

import base64
import json
import statistics
from pathlib import Path
from types import SimpleNamespace

import pytest
from hostile_texts import kinds
from litellm.types.utils import PromptTokensDetailsWrapper, Usage

from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.tokens.counter import MESSAGE_TOKENS, PIECE_CHARS, Counter, encoding, vocabulary_of
from ctx_hooks.tokens.usage import Billed, billed_of

PROSE = "The quick brown fox jumps over the lazy dog, and nobody knows why it should. " * 40
CHINESE = "今天的日志显示数据库连接在凌晨三点超时。" * 40
CODE = "def f(x):\n    return {k: v for k, v in x.items() if v is not None}\n" * 40


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("text", [PROSE, CHINESE, CODE, "", "a"], ids=["prose", "chinese", "code", "empty", "letter"])
def test_text_counts_as_its_vocabulary_says(name, text):
    assert Counter(name).text(text) == len(encoding(name).encode_ordinary(text))


def test_conversation_counts_texts_names_and_arguments():
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"key": "value"}'}}
    messages = [{"role": "user", "content": PROSE}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    counter = Counter("cl100k_base")
    expected = counter.text(PROSE) + counter.text("look_up") + counter.text('{"key": "value"}') + 2 * MESSAGE_TOKENS
    assert expected <= counter.conversation(WIRE_FORMATS["openai-chat"].read(messages)) <= expected + 8


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("kind", kinds.values(), ids=kinds)
def test_pieces_count_within_two_percent(name, kind):
    text = kind(4 * PIECE_CHARS)
    whole = len(encoding(name).encode_ordinary(text))
    assert abs(Counter(name).text(text) - whole) <= 4 + 0.02 * whole


@pytest.mark.parametrize(("model", "expected"), [
    ("gpt-4.1-mini", "o200k_base"), ("openai/gpt-4o", "o200k_base"), ("gpt-4", "cl100k_base"),
    ("azure/gpt-3.5-turbo", "cl100k_base"), ("anthropic/claude-sonnet-4-5", "o200k_base"), ("ollama/qwen3", "o200k_base"),
    ("gpt-9-of-the-future", "o200k_base"), (None, "o200k_base"),
])  # fmt: skip
def test_every_model_has_a_vocabulary(model, expected):
    assert vocabulary_of(model) == expected


@pytest.mark.parametrize(
    "text", [CHINESE, "🚀🎉" * 90, base64.b64encode(bytes(range(256))).decode(), "12.5,7.25,0.1\n" * 30]
)
def test_other_scripts_and_base64_count_by_weight(text):
    plain, weighed = Counter("o200k_base"), Counter("o200k_base", other_weight=2.5)
    message = WIRE_FORMATS["openai-chat"].read([{"role": "user", "content": PROSE + text}]).messages
    alone = WIRE_FORMATS["openai-chat"].read([{"role": "user", "content": text}]).messages
    assert plain.others(alone) == weighed.others(alone) == plain.text(text)
    assert weighed.text(text) == -(-plain.text(text) * 5 // 2)
    assert plain.others(message) <= plain.text(PROSE + text)


@pytest.mark.parametrize(
    "text", [PROSE, CODE, "“Où êtes-vous — à l’école?” Nguyễn Đức\n" * 40, "┌──┐ → ✓ ×\n" * 40], ids=str
)
def test_latin_words_code_and_boxes_have_no_weight(text):
    assert Counter("o200k_base", other_weight=3.0).text(text) == Counter("o200k_base").text(text)


MEASURED = json.loads((Path(__file__).parents[2] / "benchmarks" / "languages.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", MEASURED)
def test_count_is_within_a_fifth_of_the_median(language):
    counted = Counter(vocabulary_of("some/model-of-tomorrow")).text(MEASURED[language]["text"])
    shares = [counted / tokens for tokens in MEASURED[language]["tokens"].values()]
    assert 0.785 <= statistics.median(shares) <= 1.215
    assert max(shares) < 1 / 0.6


@pytest.mark.parametrize(("usage", "expected"), [
    ({"prompt_tokens": 120, "completion_tokens": 7}, Billed(120, 0, 0, 7)), (SimpleNamespace(prompt_tokens=11), Billed(11)),
    ({}, None), (None, None), ({"prompt_tokens": "many"}, None),
    ({"input_tokens": 20, "cache_read_input_tokens": 300, "cache_creation_input_tokens": 80}, Billed(400, 300, 80)),
    ({"input_tokens": 500, "input_tokens_details": {"cached_tokens": 400}, "output_tokens": 9}, Billed(500, 400, 0, 9)),
    (Usage(prompt_tokens=90, completion_tokens=3, prompt_tokens_details={"cached_tokens": 50}), Billed(90, 50, 0, 3)),
    ({"prompt_tokens": 90, "prompt_tokens_details": PromptTokensDetailsWrapper(cached_tokens=50)}, Billed(90, 50)),
    ({"prompt_tokens": 90, "prompt_tokens_details": {"cached_tokens": 500}}, Billed(90, 90)),
    (Usage(prompt_tokens=400, cache_read_input_tokens=300, cache_creation_input_tokens=80), Billed(400, 300, 80)),
], ids=str)  # fmt: skip
def test_every_kind_of_usage_is_read(usage, expected):
    assert billed_of(usage) == expected
