"""An overflow is known in every wording, with its figures; nothing else is ever mistaken for one."""

import json
import os
from pathlib import Path

import litellm
import pytest
from error_wordings import OTHER_ERRORS
from error_wordings import WORDINGS as UNWRITTEN

from ctx_hooks.litellm_compat.errors import overflow_of
from ctx_hooks.overflow.patterns.families import FAMILIES
from ctx_hooks.overflow.patterns.other_errors import RATE_TOO_LARGE, TOO_MANY_BYTES
from ctx_hooks.overflow.patterns.wordings import number
from ctx_hooks.overflow.recognise import PATTERNS, misses_reasoning, recognise_overflow, too_large_for_rate, too_many_bytes
from ctx_hooks.overflow.texts import own_words, plain

KINDS = {"overflow": "input", "overflow_with_max_tokens": "input_plus_output", "output_limit": "output_limit"}
BESIDE = Path(os.environ.get("CTX_HOOKS_ERRORS", Path(__file__).resolve().parents[3] / "shared" / "provider_errors.jsonl"))
ERRORS = [Path(__file__).with_name("provider_errors.jsonl"), *([BESIDE] if BESIDE.exists() else [])]
"""Some that were written in the manner of providers, and real ones where they lie beside the project."""
SAMPLE_ROWS = [
    json.loads(line) for line in Path(__file__).with_name("pattern_samples.jsonl").read_text("utf-8").splitlines()
]
SAMPLES = {row["pattern"]: row["text"] for row in SAMPLE_ROWS}

OUTPUTS = [
    ("max_tokens: 10000 > 4096, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20240620", 4096),
    ("The maximum tokens you requested exceeds the model limit of 4096. Try again with a lower maximum tokens value.", 4096),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
    ("integer above maximum value of `max_completion_tokens`, expected a value <= 12288, but got 32000 instead.", 12288),
    ("a maxOutputTokens value of 70000 but the supported range is from 1 (inclusive) to 65537 (exclusive).", 65536),
    ("max_tokens must be less than 8193, got 20000", 8192), ("max_tokens is out of range (0, 8192], got 20000", 8192),
    ("{'code': '1210', 'message': 'max_tokens参数非法。限制数值范围[1,131072]'}", 131072),
    ("[{'loc': ('body', 'max_tokens'), 'msg': 'Input should be less than or equal to 8192', 'input': 32000}]", 8192),
]  # fmt: skip
NO_OUTPUTS = [
    "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got -5 instead.",
    "max_tokens must be greater than 1024", "max_tokens must be an integer, not 4096.5", "max_tokens is too large",
]  # fmt: skip

ALL_WORDINGS = [(text, *figures) for figures, texts in UNWRITTEN.items() for text in texts]


def test_every_pattern_has_a_sample_with_its_source():
    assert {*SAMPLES} == {p.name for p in (*PATTERNS, *FAMILIES, TOO_MANY_BYTES, RATE_TOO_LARGE)}
    assert len(SAMPLES) == len(SAMPLE_ROWS)
    assert all(row["source"].startswith("https://") for row in SAMPLE_ROWS)


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_every_sample_is_recognised_by_its_own_pattern_as_its_kind(pattern):
    found = recognise_overflow(SAMPLES[pattern.name], provider=next(iter(pattern.only), None))
    assert (found.pattern, found.at_least) == (pattern.name, pattern.at_least)
    assert found.kind in (pattern.kind, {"input_plus_output": "input"}.get(pattern.kind)), "figures may say the input"


@pytest.mark.parametrize(("text", "limit"), OUTPUTS, ids=[t[:40] for t, _ in OUTPUTS])
def test_a_limit_of_the_output_is_known_in_any_words(text, limit):
    found = recognise_overflow(text, status=400)
    assert (found.kind, found.limit_tokens, found.input_tokens) == ("output_limit", limit, None)


@pytest.mark.parametrize("text", NO_OUTPUTS)
def test_a_least_output_one_without_a_limit_and_one_of_another_kind_are_none(text):
    assert recognise_overflow(text, status=400) is None


@pytest.mark.parametrize("text", OTHER_ERRORS)
def test_quotas_queues_uploads_guardrails_and_parameters_are_no_contexts(text):
    """A false positive cuts a conversation for nothing; a miss only forwards the error."""
    assert recognise_overflow(text, status=400) is None
    assert too_large_for_rate(own_words(text)) is None
    in_litellm = litellm.BadRequestError(f"OpenAIException - {text}", "gpt", "openai", body={"message": text, "code": "400"})
    assert recognise_overflow(in_litellm) is None


@pytest.mark.parametrize(("text", "limit", "given"), ALL_WORDINGS, ids=[t[:40] for t, _, _ in ALL_WORDINGS])
def test_wordings_nobody_has_written_down_are_known_with_their_figures(text, limit, given):
    retries = "LiteLLM Retried: 2 times, LiteLLM Max Retries: 2"
    wrapped = f"{text}. Received Model Group=gpt\nAvailable Model Group Fallbacks=None {retries}"
    in_litellm = litellm.BadRequestError(f"OpenAIException - {text}", "gpt", "openai", body={"error": {"message": text}})
    for error in (text, wrapped, in_litellm, {"object": "error", "message": text, "code": 400}):
        found = recognise_overflow(error, status=400)
        assert (found.limit_tokens, found.input_tokens) == (limit, given)


LENGTH_SETTINGS = (
    "max_num_tokens", "--max-model-len", "max_batch_prefill_tokens", "max_position_embeddings", "maxSeqLen",
    "model_max_length", "context_window_size", "session_len", "n_ctx_slot",
)  # fmt: skip
OTHER_SETTINGS = ("max_n", "max_batch_size", "max_logprobs", "max_num_seqs", "max_beam_width")
NOTATIONS = [("40000", "32768"), ("40000.0", "32768"), ("40,000", "32,768"), ("40 000", "32 768"), ("40.000", "32.768")]
SENTENCES = (
    "prompt length ({given}) should not exceed {name} ({limit})",
    "The prompt has {given} tokens, must be <= {name}={limit}",
    "{name}: {limit} is less than the {given} tokens of the input",
)


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("name", LENGTH_SETTINGS)
def test_a_limit_named_after_a_servers_setting_is_known_in_either_order_and_any_notation(name, sentence):
    for given, limit in NOTATIONS:
        found = recognise_overflow(sentence.format(name=name, given=given, limit=limit), status=400)
        assert (found.limit_tokens, found.input_tokens) == (32_768, 40_000)


@pytest.mark.parametrize("name", OTHER_SETTINGS)
def test_a_setting_that_limits_no_length_is_no_context(name):
    for text in (f"value 40000 exceeds {name} (32768)", f"{name} must be less than 2048"):
        assert recognise_overflow(text, status=400) is None


def test_without_words_of_context_a_status_of_another_matter_is_believed():
    assert [recognise_overflow("Prompt exceeds max length", status=status) for status in (401, 402, 403, 429)] == [None] * 4
    assert recognise_overflow("Prompt exceeds max length", status=413) is not None
    assert recognise_overflow("prompt is too long: 219898 tokens > 200000 maximum", status=429) is not None


@pytest.mark.parametrize("code", ["context_overflow", "context_limit_exceeded", "context_too_long"])
def test_code_or_word_of_context_is_overflow(code):
    for error in ({"error": {"message": "Request failed", "code": code}}, code.replace("too_long", "overflow")):
        assert recognise_overflow(error, status=400).kind == "input"


LIMITS_IN_BYTES = [
    ("<html><title>413 Request Entity Too Large</title><body><center>nginx/1.27.0</center></body></html>", None),
    ("total message size 2100954 exceeds limit 2097152", 2_097_152), ("request_too_large", None),
    ("Request body too large. The max request body size is 30,000,000 bytes.", 30_000_000), ("Request Too Long", None),
    ("Request must be smaller than 6291456 bytes for the InvokeFunction operation", 6_291_456), ("Payload Too Large", None),
    ("Value at 'body' failed to satisfy constraint: Member must have length less than or equal to 25000000", 25_000_000),
    ("grpc: received message larger than max (5000000 vs. 4194304)", 4_194_304),
]  # fmt: skip


@pytest.mark.parametrize(("text", "limit"), LIMITS_IN_BYTES)
def test_limit_in_bytes_is_no_limit_of_tokens(text, limit):
    assert recognise_overflow(text, status=400) is None
    found = too_many_bytes(own_words(text))
    assert (found.kind, found.limit_bytes, found.limit_tokens) == ("bytes", limit, None)


@pytest.mark.parametrize("text", [
    "Request too large for gpt-5 on tokens per min (TPM): Limit 1200, Requested 900.", "Request Header Or Cookie Too Large",
    "image exceeds 5 MB maximum: 6543210 bytes > 5242880 bytes", "Request body too large for m. Max size: 8000 tokens.",
    "the request exceeds the available context size (8192 tokens)", "The file is too large",
])  # fmt: skip
def test_limit_of_tokens_or_one_part_is_none_in_bytes(text):
    assert too_many_bytes(own_words(text), status=413) is None or "tokens" not in text
    assert too_many_bytes(own_words(text)) is None


@pytest.mark.parametrize(("text", "tokens"), [
    ("9351.0", 9351), ("9,351", 9351), ("32 768", 32768), ("32.768", 32768), ("32'768", 32768), ("1_048_576", 1_048_576),
    ("1,048,576.0", 1_048_576), ("200k", 200_000), ("1m", 1_000_000), ("512", 512),
])  # fmt: skip
def test_figures_are_read_in_every_notation(text, tokens):
    assert recognise_overflow(f"prompt is too long: {text} tokens > 100 maximum").input_tokens == number(text) == tokens


def test_the_providers_sentence_is_carried_without_what_clients_put_before_it():
    text = "prompt is too long: 219898 tokens > 200000 maximum"
    error = litellm.BadRequestError(f"AnthropicException - {text}", "claude", "anthropic")
    assert recognise_overflow(error).sentence == text
    long = recognise_overflow(text + ". " + "Every word\n of it\u2028counts. " * 40).sentence
    assert long.startswith(text)
    assert len(long) <= 300
    assert long.isprintable()


@pytest.mark.parametrize("pattern", [TOO_MANY_BYTES, RATE_TOO_LARGE], ids=lambda p: p.name)
def test_what_looks_like_an_overflow_and_is_none_matches_its_own_pattern_and_is_not_recognised(pattern):
    assert pattern.regex.search(plain(SAMPLES[pattern.name]))
    assert recognise_overflow(SAMPLES[pattern.name]) is None


@pytest.mark.parametrize(("asked", "is_overflow"), [(8_192, False), (8_193, True)])
def test_a_request_that_is_as_large_as_the_limit_was_refused_for_something_else(asked, is_overflow):
    text = f"This model's maximum context length is 8192 tokens. However, you requested {asked} tokens "
    text += f"({asked - 1_192} in the messages, 1192 in the completion)."
    assert bool(recognise_overflow(text)) is is_overflow


@pytest.mark.parametrize(("given", "kind"), [(8_192, "input_plus_output"), (8_193, "input")])
def test_an_input_that_fills_the_window_is_too_long_with_an_output_alone(given, kind):
    text = f"This model's maximum context length is 8192 tokens. However, you requested {given + 1_000} tokens "
    assert recognise_overflow(text + f"({given} in the messages, 1000 in the completion).").kind == kind


def test_a_gateway_keeps_the_words_of_its_provider_beside_its_own():
    raw = "This model's maximum context length is 32768 tokens. However, your request has 40001 input tokens."
    for told in (raw, json.dumps({"error": {"message": raw}})):
        body = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": told}}}
        assert recognise_overflow(json.dumps(body), provider="openrouter").limit_tokens == 32_768


FRAMES = (
    'Traceback (most recent call last):\n  File "/srv/context_length.py", line 727, in prompt exceeds\n'
    '  File "b.py", line 1789'
)


@pytest.mark.parametrize("text", [
    FRAMES, FRAMES.replace("\n", " "), json.dumps({"error": {"message": FRAMES}}), FRAMES.partition("\n")[2],
    "failed\n    at contextLength (/srv/prompt exceeds max 8192.js:9000:10)",
])  # fmt: skip
def test_no_figure_comes_from_a_stack_trace(text):
    for before in ("", "litellm.APIConnectionError: OpenAIException - ", "the context length is exceeded\n"):
        found = recognise_overflow(before + text)
        assert found is None or (before.startswith("the") and found.figures == (None, None, None))


UNREADABLE = [
    f"Invalid response object {FRAMES}\n\nreceived_args={{'response_object': {{'usage': {{'prompt_tokens': 2500.5}}}}}}",
    "Unable to get json response - Expecting value: line 1 column 1 (char 0), Original Response: {words}",
    'Error parsing chunk: x,\nReceived chunk: {{"error": {{"message": "{words}", "code": "context_length_exceeded"}}}}',
    "1 validation error for Usage\nprompt_tokens\n  Input should be a valid integer: {words}",
    "Error processing={words}, Received error=KeyError('output')",
    "Failed to parse Clarifai response: {words}",
]


@pytest.mark.parametrize("text", UNREADABLE)
def test_an_answer_that_litellm_cannot_read_is_no_overflow(text):
    """Such an error quotes the answer, which may hold the words of any overflow, and LiteLLM may take it for one."""
    text = text.replace("{words}", ECHO)
    for kind in (litellm.APIConnectionError, litellm.InternalServerError, litellm.ContextWindowExceededError):
        error = kind(message=f"OpenAIException - {text}", model="gpt", llm_provider="openai")
        error.body = {"code": "context_length_exceeded"}
        assert overflow_of(error) is None


ECHO = "prompt is too long: 219898 tokens > 200000 maximum"


@pytest.mark.parametrize("error", [
    {"error": {"message": "Wrong API key", "metadata": {"prompt": ECHO}}},
    {"error": {"message": "Invalid API key"}, "input": ECHO, "messages": [{"role": "user", "content": ECHO}]},
    {"error": {"message": f"Invalid value for 'role'. input: {ECHO}"}},
    f"1 validation error: messages.0.content [type=string_type, input_value='{ECHO}', input_type=str]",
], ids=["within", "beside", "quoted", "pydantic"])  # fmt: skip
def test_an_echo_of_a_prompt_is_not_the_errors_own_message(error):
    assert recognise_overflow(error) is None


@pytest.mark.parametrize(("requested", "expected"), [(480_002, 200_000), (11_159, None)])
def test_a_single_request_above_the_rate_limit_is_told_from_a_busy_minute(requested, expected):
    text = f"Request too large for gpt-5 on tokens per min (TPM): Limit 200000, Requested {requested}."
    found = too_large_for_rate(own_words(text))
    assert (found.limit_tokens if found else None) == expected
    assert recognise_overflow(text) is None


@pytest.mark.parametrize("errors", ERRORS, ids=["written", "real"][: len(ERRORS)])
def test_every_error_is_told_apart_by_its_status_body_and_provider(errors):
    for line in errors.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found = recognise_overflow(row["message"], status=row["status"], body=row["body"], provider=row["provider"])
        assert (found.kind if found else None) == KINDS.get(row["kind"]), row["message"]
        for field in ("limit_tokens", "input_tokens", "requested_output_tokens"):
            if found and row[field] is not None:
                assert getattr(found, field) == row[field], row["message"]


DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
MOONSHOT = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 19"
MISSING = [
    DEEPSEEK, MOONSHOT, "The `content[].thinking` in the thinking mode must be passed back to the API.",
    "Missing `reasoning_content` field in the assistant message at message index 2. For more, see https://api.example",
    "messages[51]: assistant message with tool_calls must include reasoning_content", "`reasoning_content` 必须返回给 API",
    {"error": {"code": "400", "message": "Param Incorrect", "param": DEEPSEEK, "type": ""}},
    {"error": {"message": "Provider error", "metadata": {"raw": json.dumps({"error": {"message": DEEPSEEK}})}}},
]  # fmt: skip
NOT_MISSING = [
    "Unsupported parameter: reasoning_content is not supported in messages; remove it.",
    "reasoning_content must not be included in the input messages",
    "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
    {"error": {"message": "Internal error", "input": MOONSHOT}},
]


@pytest.mark.parametrize("said", MISSING, ids=str)
def test_wording_is_recognised_and_no_overflow(said):
    text = said if isinstance(said, str) else json.dumps(said)
    error = litellm.BadRequestError(f"OpenAIException - {text}", "m", "openai")
    assert misses_reasoning(said)
    assert misses_reasoning(error)
    assert recognise_overflow(error, status=400) is None


@pytest.mark.parametrize("said", NOT_MISSING, ids=str)
def test_other_refusals_are_left_alone(said):
    assert not misses_reasoning(said)
