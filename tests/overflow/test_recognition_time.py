"""Recognition takes no longer the larger an error is, whatever stands in it."""

import json
import time

import litellm
import pytest

from ctx_hooks.overflow.figures import figures_of
from ctx_hooks.overflow.patterns.families import FAMILIES
from ctx_hooks.overflow.patterns.other_errors import NOT_OVERFLOW, RATE_TOO_LARGE, TOO_MANY_BYTES
from ctx_hooks.overflow.recognise import PATTERNS, recognise_overflow, too_large_for_rate
from ctx_hooks.overflow.texts import MOST_TOTAL_CHARS, beginning_of, own_words

MEGABYTE = 1_200_000
MOST_SECONDS = 2
PATTERN_CHARS = 16_000
MOST_PATTERN_SECONDS = 0.5
"""Both are more than 30 times what the slowest takes. All pairs of PATTERN_CHARS take 1.3 s at 10 ns each."""
UNITS = [
    "prompt ", "exceeds the maximum ", "1", "1,234", "limit limit ", "max_num_", "maximum number of ", "input tokens ",
    "maximum context length is 8192 tokens. however, you requested ", "request too large ", "sum of + and ", "'message': ",
    "litellm.Error: ", 'File "a", ', "error parsing a ", "https://", "(", '{"error":', " ", "输入", "超过 ",
]  # fmt: skip


def nested_in_text(levels: int, text: str) -> str:
    """An error whose message is the JSON of an error, and so on."""
    for _ in range(levels):
        text = json.dumps({"error": {"message": text, "detail": [text[:50]] * 3}})
    return text


def nested_everywhere(levels: int) -> dict[str, object]:
    """A body that has the next one below each of its keys: ten times as many with each level."""
    body: dict[str, object] = {"message": "x"}
    for _ in range(levels):
        body = {"message": body, "error": body, "detail": [body] * 3, "errors": [body] * 3, "msg": body, "raw": body}
    return body


def causes(levels: int, text: str) -> Exception:
    """An error that has a cause, and so on, each with a body."""
    error = litellm.BadRequestError(text, "gpt", "openai", body={"error": {"message": text}})
    for _ in range(levels):
        outer = litellm.BadRequestError(text, "gpt", "openai", body={"error": {"message": text}})
        outer.__cause__ = error
        error = outer
    return error


INVALID = {"detail": [{"loc": ["body"], "msg": "field required", "input": "x" * 100}] * 5_000}
ECHO = {"messages": [{"role": "user", "content": "prompt is too long " * 60_000}]}
BODIES = {
    "nested in text": nested_in_text(7, "a " * 4_000), "large and nested in text": nested_in_text(4, "a " * 40_000),
    "nested everywhere": nested_everywhere(9), "nested lists": "[" * MEGABYTE, "nested objects": '{"error":' * 200_000,
    "causes": causes(8, "prompt exceed max token limit 8192 " * 30_000),
    "an exception of a body": RuntimeError({"error": {"message": "x" * MEGABYTE}}),
    "an exception of a nested text": litellm.BadRequestError(nested_in_text(3, "a " * 100_000), "gpt", "openai"),
    "validation errors": INVALID, "validation errors as text": json.dumps(INVALID),
    "an echo": {"error": {"message": "Invalid request"}, **ECHO},
    "an echo as text": json.dumps({"error": {"message": "Invalid request"}, **ECHO}),
}  # fmt: skip


def seconds(work) -> float:
    started = time.thread_time()  # of this thread alone: other processes may be busy
    work()
    return time.thread_time() - started


def recognised(error: object) -> None:
    recognise_overflow(error, status=400)
    too_large_for_rate(own_words(error))


def assert_read_at_once(error) -> None:
    assert seconds(lambda: recognised(error)) < MOST_SECONDS
    assert sum(len(text) for text in own_words(error).texts) <= MOST_TOTAL_CHARS


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_large_body_of_any_build_is_read_at_once_and_in_part(body):
    assert_read_at_once(body)


@pytest.mark.parametrize("unit", UNITS)
def test_a_megabyte_of_anything_is_read_at_once_and_each_pattern_is_linear_in_it(unit):
    """Texts are cut before patterns see them; patterns are fast all the same, so that the cut may change."""
    text = (unit * (MEGABYTE // len(unit) + 1))[:MEGABYTE]
    assert_read_at_once(text)
    assert_read_at_once({"error": {"message": text}})
    regexes = [NOT_OVERFLOW, *(p.regex for p in (*PATTERNS, TOO_MANY_BYTES, RATE_TOO_LARGE))]
    regexes += [need for family in FAMILIES for need in family.needs]
    for work in [*(r.search for r in regexes), figures_of, beginning_of]:
        assert seconds(lambda w=work: w(text[:PATTERN_CHARS])) < MOST_PATTERN_SECONDS, work


def test_an_overflow_is_found_below_and_beside_much_else():
    text = "prompt is too long: 219898 tokens > 200000 maximum"
    for error in (
        {"error": {"message": text}, **ECHO},
        nested_in_text(6, text),
        causes(8, text),
        json.dumps({"error": {"message": text, "echo": "x" * MEGABYTE}}),
    ):
        assert recognise_overflow(error) is not None
