"""Conversations of all formats, made by Hypothesis: valid ones, and ones that were broken afterwards."""

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import strategies as st

from ctx_hooks.testing import gemini, sign

FIELDS = {"openai-chat": "messages", "anthropic": "messages", "openai-responses": "input", "gemini": "contents"}
"""The field of each format that carries the messages."""
CALL_TYPES = {
    "openai-chat": "acompletion",
    "anthropic": "anthropic_messages",
    "openai-responses": "aresponses",
    "gemini": "agenerate_content",
}
"""What LiteLLM calls a call in each format."""
FORMATS = tuple(FIELDS)
every_format = pytest.mark.parametrize("fmt", FORMATS)


def items_of(payload):
    """Return the messages of a payload of any format."""
    return next(payload[field] for field in ("messages", "input", "contents") if field in payload)


def spoken(fmt, role, text):
    """Return a message of the user's or the assistant's."""
    if fmt == "gemini":
        return {"role": "model" if role == "assistant" else role, "parts": [{"text": text}]}
    return {"role": role, "content": text}


def called(result, call_id="c", name="read", arguments="{}"):
    """Return a call and its result as chat writes them."""
    return tool_round("openai-chat", [(call_id, result)], name=name, arguments=arguments)


def tool_round(fmt, results, said="", name="read_file", arguments=None):
    """Return an answer of calls and their results, by the calls' ids, and what a user says beside or behind them.

    Gemini's calls have no ids here. Without a result, None, a call is not answered. Arguments that are a text are sent as it
    is.
    """
    given, words = arguments or {}, [spoken(fmt, "user", said)] if said else []
    text = given if isinstance(given, str) else json.dumps(given)
    answered = [(i, result) for i, result in results if result is not None]
    if fmt == "openai-chat":
        calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": text}} for i, _ in results]
        done = [{"role": "tool", "tool_call_id": i, "content": result} for i, result in answered]
        return [{"role": "assistant", "content": None, "tool_calls": calls}, *done, *words]
    if fmt == "openai-responses":
        calls = [{"type": "function_call", "call_id": i, "name": name, "arguments": text} for i, _ in results]
        return [*calls, *({"type": "function_call_output", "call_id": i, "output": r} for i, r in answered), *words]
    if fmt == "anthropic":
        calls = [{"type": "tool_use", "id": i, "name": name, "input": given} for i, _ in results]
        done = [{"type": "tool_result", "tool_use_id": i, "content": result} for i, result in answered]
        done += [{"type": "text", "text": said}] if said else []
        return [{"role": "assistant", "content": calls}, *([{"role": "user", "content": done}] if done else [])]
    calls = [{"functionCall": {"name": name, "args": given}} for _ in results]
    done = [{"functionResponse": {"name": name, "response": {"output": result}}} for _, result in answered]
    done += [{"text": said}] if said else []
    return [{"role": "model", "parts": calls}, *([{"role": "user", "parts": done}] if done else [])]


def screenshots(fmt, images):
    """Return a request and so many rounds of chat or of messages, each with a screenshot of 60 kB as its result."""
    data = base64.b64encode(random.Random(1).randbytes(45_000)).decode()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    if fmt == "anthropic":
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    rounds = (tool_round(fmt, [(f"c{n}", [image])], name="look", arguments={"page": n}) for n in range(images))
    return [spoken(fmt, "user", "Look at the pages."), *(message for made in rounds for message in made)]


WORDS = [
    "alpha", "src/app/main.py", "ERROR", "line_42", "結果", "user_id=7731", "the", "of", "value", "{", "}", "0x1f", "naïve",
]  # fmt: skip


def _encodes(text: str) -> bool:
    return not any("\ud800" <= c <= "\udfff" for c in text)


words = st.sampled_from(WORDS)
lines = st.lists(words, min_size=1, max_size=12).map(" ".join)
texts = st.one_of(
    lines,
    st.lists(lines, min_size=1, max_size=30).map("\n".join),
    st.integers(5, 60).flatmap(
        lambda n: words.map(lambda w: "\n".join(f"step {i} of {n}: {w} \x1b[32mok\x1b[0m" for i in range(n)))
    ),
    st.dictionaries(words, st.lists(st.integers(), max_size=20), min_size=1, max_size=8).map(
        lambda d: json.dumps(d, indent=2)
    ),
    st.integers(1, 40).map(lambda n: "中文日志记录了这次调用的结果。" * n),
    st.deferred(lambda: hostile_texts.filter(_encodes).map(lambda text: f"{text}.")),  # no message may end in a blank
)
FRAGMENTS = [
    "\r", "\r\n", "\r\r\n", "\n", "\n\n\n\n", " ", "\t", "  \n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\x00",
    "\u3000", "\x1b[0m", "\x1b[1;31m", "\x1b[2K", "\x1b[1G", "\x1b[5C", "\x1b[", "\x1b", "\x1b]", "\x1b]0;title\x07",
    "\x1b]8;;u\x1b\\", "\x1b(B", "a", "abc", "31m", "[0m", "0;x", "progress 10%", "[==>  ] 20%", "line one", "deadbeef1",
    "0x1f", "12:00:01 worker 7 done", "é", "e\u0301", "\u0301", "👩‍👩‍👧", "中文", "हिन्दी", "İ", "\ud800", "\udfff", "\ufeff",
    '"', "\\", '\\"', "{", "}", "[", "]", ",", ":", "1.10", "1e999", "null", '{"a": 1, "a": [1, 2]}',
    '"{\\"b\\": \\"c\\"}"', "…",
]  # fmt: skip
fragments = st.sampled_from(FRAGMENTS)
hostile_texts = st.one_of(
    st.lists(fragments, max_size=40).map("".join),
    st.tuples(fragments, fragments, st.integers(1, 200)).map(lambda t: t[0] + t[1] * t[2]),
    st.lists(st.tuples(fragments, st.integers(1, 12)), max_size=12).map(lambda runs: "".join(f * n for f, n in runs)),
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text(max_size=8), fragments),
        lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(st.text(max_size=5), inner, max_size=5)),
    ).map(lambda value: json.dumps([value, json.dumps([value], indent=1)], indent=2)),
    st.text(max_size=60),
)
"""Texts made to break what reads them: carriage returns, escapes, blanks, brackets, combining marks, surrogates, JSON."""
paths = st.sampled_from(["src/a.py", "src/b.py", "docs/読.md", "lib/c.go"])


@st.composite
def _steps(draw: Any) -> list[tuple[str, Any]]:
    """Draw what happened: questions, answers, and rounds of tool calls with their results."""
    happened: list[tuple[str, Any]] = [("user", draw(texts))]
    for _ in range(draw(st.integers(0, 7))):
        kind = draw(st.sampled_from(["user", "assistant", "tools", "tools"]))
        if kind == "tools":
            calls = draw(st.lists(st.tuples(paths, texts, st.booleans()), min_size=1, max_size=3))
            happened.append(("tools", (draw(st.one_of(st.just(""), lines)), draw(st.booleans()), calls)))
        else:
            happened.append((kind, draw(texts)))
    if draw(st.booleans()):
        happened.append(("user", draw(lines)))
    return happened


@st.composite
def payloads(draw: Any, fmt: str) -> list[dict[str, Any]]:
    """Draw the messages of a valid request."""
    repeat_ids = fmt == "openai-chat" and draw(st.booleans())
    return _written(fmt, draw(_steps()), repeat_ids=repeat_ids)


@st.composite
def broken_payloads(draw: Any, fmt: str) -> list[dict[str, Any]]:
    """Draw the messages of a request from which some went missing or changed places."""
    messages = draw(payloads(fmt))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(messages) - 1))
        if draw(st.booleans()) and len(messages) > 1:
            del messages[at]
        else:
            messages.insert(draw(st.integers(0, len(messages))), messages[at])
    return messages


def _written(fmt: str, happened: list[tuple[str, Any]], *, repeat_ids: bool) -> list[dict[str, Any]]:
    """Write what happened in a format; a round of tools is what is said, whether it thinks, and (id, path, text, fails)."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are careful."}] if fmt == "openai-chat" else []
    signs = any(kind == "tools" and what[1] for kind, what in happened)
    for n, (kind, what) in enumerate(happened):
        if kind != "tools":
            messages.append(_words(fmt, kind, what, in_blocks=n % 2 == 0))
            continue
        said, thinks, calls = what
        listed = [(f"call_{k}" if repeat_ids else f"call_{n}_{k}", *call) for k, call in enumerate(calls)]
        if fmt == "openai-chat":
            messages += _chat_round(said, listed, thinks=thinks)
        elif fmt == "anthropic":
            messages += _anthropic_round(said, listed, thinks=thinks)
        elif fmt == "openai-responses":
            messages += _responses_round(said, listed, n, thinks=thinks)
        else:
            before: list[dict[str, Any]] = []
            while messages[-1]["role"] == "model":  # no call stands behind the model's own turn
                before = [*messages.pop()["parts"], *before]
            messages += _gemini_round(before, said, listed, thinks=thinks, has_ids=n % 2 == 1, signs=signs)
    if fmt == "anthropic":  # a prompt cache ends in four places at most
        for message in messages[:-4]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                block.pop("cache_control", None)
    return messages


def _words(fmt: str, role: str, text: str, *, in_blocks: bool) -> dict[str, Any]:
    if fmt == "anthropic" and in_blocks:
        return {"role": role, "content": [{"type": "text", "text": text}]}
    if fmt == "openai-responses":
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return spoken(fmt, role, text)


def _chat_round(said: str, calls: list[Any], *, thinks: bool) -> list[dict[str, Any]]:
    thought = {"reasoning_content": "thinking about it"} if thinks else {}
    made = [
        {"id": i, "type": "function", "function": {"name": "read_file", "arguments": json.dumps({"path": path})}}
        for i, path, *_ in calls
    ]
    answer = {"role": "assistant", "content": said or None, **thought, "tool_calls": made}
    return [answer, *({"role": "tool", "tool_call_id": i, "content": text} for i, _, text, _ in calls)]


def _anthropic_round(said: str, calls: list[Any], *, thinks: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "hm", "signature": sign("hm")}] if thinks else []
    blocks += [{"type": "text", "text": said}] if said else []
    blocks += [{"type": "tool_use", "id": i, "name": "read_file", "input": {"path": path}} for i, path, *_ in calls]
    results = [
        {"type": "tool_result", "tool_use_id": i, "content": text, **({"is_error": True} if fails else {})}
        for i, _, text, fails in calls
    ]
    results[-1]["cache_control"] = {"type": "ephemeral"}
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]


def _responses_round(said: str, calls: list[Any], n: int, *, thinks: bool) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if thinks:
        items.append({"type": "reasoning", "id": f"rs_{n}", "summary": [], "encrypted_content": "gAAAA"})
    items += [_words("openai-responses", "assistant", said, in_blocks=True)] if said else []
    made = {"type": "function_call", "name": "read_file"}
    items += [{**made, "call_id": i, "arguments": json.dumps({"path": path})} for i, path, *_ in calls]
    return [*items, *({"type": "function_call_output", "call_id": i, "output": text} for i, _, text, _ in calls)]


def _gemini_round(
    before: list[Any], said: str, calls: list[Any], *, thinks: bool, has_ids: bool, signs: bool
) -> list[dict[str, Any]]:
    """A model that thinks signs the first call of each round."""
    parts = [*before, *([{"text": "hm", "thought": True}] if thinks else []), *([{"text": said}] if said else [])]
    named = [({"id": i} if has_ids else {}) | {"name": "read_file"} for i, *_ in calls]
    asked = [{"functionCall": {**own, "args": {"path": path}}} for own, (_, path, *_) in zip(named, calls, strict=True)]
    if signs:
        asked[0]["thoughtSignature"] = gemini.sign(asked[0])
    answers = [
        {"functionResponse": {**own, "response": {"error" if fails else "output": text}}}
        for own, (*_, text, fails) in zip(named, calls, strict=True)
    ]
    return [{"role": "model", "parts": [*parts, *asked]}, {"role": "user", "parts": answers}]
