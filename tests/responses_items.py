"""Items of OpenAI's Responses API of every known type, and of types that nobody knows, with a text of any length each."""

import json

from hypothesis import strategies as st

LINE = "src/server_{n}.py:{n}: handler {n} of the request returned no value in module {n}"


def text_of(chars, seed=0):
    """Return lines that all differ, as output of a tool has."""
    lines, n = [], seed * 1_000
    while sum(map(len, lines)) + len(lines) < chars:
        lines.append(LINE.format(n=n))
        n += 1
    return "\n".join(lines)


def _blocks(text, kind="input_text"):
    half = len(text) // 2
    return [{"type": kind, "text": text[:half]}, {"type": kind, "text": text[half:]}]


def _image(text):
    return {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo" + "Ab1" * (len(text) // 30)}


PAIRS = {
    "function_call": lambda t: [{"name": "read", "arguments": '{"path":"a.py"}'}, {"output": t}],
    "custom_tool_call": lambda t: [{"name": "apply_patch", "input": "*** Begin Patch"}, {"output": t}],
    "shell_call": lambda t: [
        {"status": "completed", "action": {"commands": ["cat a.py", "make"], "timeout_ms": 9, "max_output_length": 9_999}},
        {
            "max_output_length": 9_999,
            "output": [
                {"stdout": t[: len(t) // 2], "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "ok", "stderr": t[len(t) // 2 :], "outcome": {"type": "timeout"}},
            ],
        },
    ],
    "apply_patch_call": lambda t: [
        {"status": "completed", "operation": {"type": "update_file", "path": "a.py", "diff": t[: len(t) // 2]}},
        {"status": "completed", "output": t[len(t) // 2 :]},
    ],
    "computer_call": lambda t: [
        {"status": "completed", "action": {"type": "type", "text": t}, "pending_safety_checks": [{"id": "cu", "code": "c"}]},
        {"output": _image(t)},
    ],
    "tool_search_call": lambda t: [
        {"execution": "client", "status": "completed", "arguments": {"query": "calendar"}},
        {
            "execution": "client",
            "status": "completed",
            "tools": [
                {"type": "function", "name": n, "description": d, "parameters": {"type": "object", "properties": {}}}
                for n, d in (("add", t[: len(t) // 2]), ("move", t[len(t) // 2 :]))
            ],
        },
    ],
    "program": lambda t: [
        {"code": t[: len(t) // 2], "fingerprint": "f" * 40},
        {"result": t[len(t) // 2 :], "status": "completed"},
    ],
    "lookup": lambda t: [{"question": "Who?"}, {"results": [{"passage": t, "score": 0.5}]}],
}
"""By the type of the call: the fields of a call and of its output, for a text."""
SHAPES = {
    "custom_tool_call": "custom_tool_call_output",
    "program": "program_output",
    "tool_search_call": "tool_search_output",
}
WHOLE = {
    "mcp_call": lambda t: {
        "server_label": "docs", "name": "search", "arguments": '{"q": "cache"}', "output": t, "error": None,
    },
    "failed mcp_call": lambda t: {
        "type": "mcp_call", "server_label": "docs", "name": "search", "arguments": "{}", "output": None,
        "error": {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": t}]},
    },
    "code_interpreter_call": lambda t: {
        "container_id": "cntr_1", "code": t[: len(t) // 2], "status": "completed",
        "outputs": [{"type": "logs", "logs": t[len(t) // 2 :]}, {"type": "image", "url": "https://a.org/plot.png"}],
    },
    "file_search_call": lambda t: {
        "queries": ["cache"], "status": "completed",
        "results": [
            {"file_id": "file_1", "filename": "a.md", "score": 0.9, "attributes": {"k": "v"}, "text": t[: len(t) // 2]},
            {"file_id": "file_2", "filename": "b.md", "score": 0.8, "attributes": None, "text": t[len(t) // 2 :]},
        ],
    },
    "web_search_call": lambda t: {
        "status": "completed", "action": {"type": "search", "query": t, "sources": [{"type": "url", "url": "https://a.org"}]},
    },
    "image_generation_call": lambda t: {"status": "completed", "result": "iVBORw0KGgo" + "Ab1" * 400, "revised_prompt": t},
    "mcp_approval_request": lambda t: {"server_label": "docs", "name": "write", "arguments": json.dumps({"text": t})},
    "agent_message": lambda t: {"author": "reviewer", "recipient": "lead", "content": _blocks(t)},
    "server_search_call": lambda t: {"execution": "server", "call_id": None, "arguments": {"paths": [t]}},
    "notebook_cell": lambda t: {"cells": [{"source": "print(1)", "rendered": [{"mime": "text/plain", "value": t}]}]},
}  # fmt: skip
"""By their type, the fields of items that no other item answers."""
KINDS = (*PAIRS, *WHOLE)


def made(kind, text, *, number=0, thought="", has_ids=True):
    """Return the items of one call of `kind`; their ids name the reasoning before them, as the fake provider's do."""
    prefix = "".join(c for c in kind if c.isalpha())
    own = {"id": f"{prefix}_{thought}_{number}" if thought else f"{prefix}_{number}"} if has_ids else {}
    if kind in WHOLE:
        return [{"type": kind.removeprefix("failed "), **own, **WHOLE[kind](text)}]
    call_id = f"call_{number}"
    asks, gets = PAIRS[kind](text)
    name = kind.split()[0]
    answer = {"lookup": "lookup_result"}.get(name) or SHAPES.get(name, f"{name}_output")
    return [{"type": name, **own, "call_id": call_id, **asks}, {"type": answer, "call_id": call_id, **gets}]


def user(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def said(text, *, number=0, thought="", has_ids=True):
    own = {"id": f"msg_{thought}_{number}" if thought else f"msg_{number}"} if has_ids else {}
    return {
        "type": "message",
        "role": "assistant",
        **own,
        "content": [{"type": "output_text", "text": text, "annotations": []}],
    }


def session(kind, *, calls=12, chars=8_000):
    """Return a user's request, that many calls of a kind with texts of that length, and the user's next words."""
    items = [user("Refactor the cache module and run the tests until they pass.")]
    for n in range(calls):
        items += made(kind, text_of(chars, seed=n), number=n)
    return [*items, user("Now summarise what you found.")]


@st.composite
def conversations(draw, most_chars=12_000):
    """Draw a conversation of items of all kinds, with reasoning before some, and of several answers."""
    items, number = [user(draw(st.sampled_from(["Begin.", "Fix the tests.", text_of(600)])))], 0
    for turn in range(draw(st.integers(2, 6))):
        for step in range(draw(st.integers(1, 4))):
            thought = f"rs_{turn}{step}" if draw(st.booleans()) else ""
            has_ids = bool(thought) or draw(st.booleans())
            if thought:
                items.append({"type": "reasoning", "id": thought, "summary": [], "encrypted_content": "gAAAA" + "x" * 40})
            if draw(st.integers(0, 3)) == 0:
                items.append(
                    said(
                        draw(st.sampled_from(["I look.", text_of(900, 7)])), number=number, thought=thought, has_ids=has_ids
                    )
                )
            made_items = []
            for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)):
                number += 1
                text = text_of(draw(st.integers(40, most_chars)), seed=number)
                made_items.append(made(kind, text, number=number, thought=thought, has_ids=has_ids))
            items += [m[0] for m in made_items]  # the model writes all its items before the client answers
            items += [answer for m in made_items for answer in m[1:]]
        if draw(st.booleans()):
            items.append(said("Done.", number=number + 100))
        items.append(user(f"Go on, part {turn}."))
    return items if draw(st.booleans()) else items[:-1]
