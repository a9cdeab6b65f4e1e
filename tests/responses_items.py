"""Items of OpenAI's Responses API of every known type, and of types that nobody knows, with a text of any length each."""

import json

from hypothesis import strategies as st

LINE = "src/server_{n}.py:{n}: handler {n} of the request returned no value in module {n}"
TEXT = "TEXT"
"""In the fields below it stands for the item's text; where it stands several times, for a part of it each."""
PICTURE = "iVBORw0KGgo" + "Ab1" * 400
OK = {"status": "completed"}
SHELL = {"commands": ["cat a.py", "make"], "timeout_ms": 9, "max_output_length": 9_999}
SHELL_OUTPUT = [
    {"stdout": TEXT, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
    {"stdout": "ok", "stderr": TEXT, "outcome": {"type": "timeout"}},
]
SCREEN = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PICTURE}"}
TOOLS = [
    {"type": "function", "name": n, "description": TEXT, "parameters": {"type": "object", "properties": {}}}
    for n in ("add", "move")
]
FOUND = [
    {"file_id": "file_1", "filename": "a.md", "score": 0.9, "attributes": {"k": "v"}, "text": TEXT},
    {"file_id": "file_2", "filename": "b.md", "score": 0.8, "attributes": None, "text": TEXT},
]
SEARCH = {"type": "search", "query": TEXT, "sources": [{"type": "url", "url": "https://a.org"}]}
FAILURE = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": TEXT}]}
CLIENT = {"execution": "client", **OK}
PAIRS = {
    "function_call": ({"name": "read", "arguments": '{"path":"a.py"}'}, "function_call_output", {"output": TEXT}),
    "custom_tool_call": (
        {"name": "apply_patch", "input": "*** Begin Patch"}, "custom_tool_call_output", {"output": TEXT},
    ),
    "shell_call": ({**OK, "action": SHELL}, "shell_call_output", {"max_output_length": 9_999, "output": SHELL_OUTPUT}),
    "apply_patch_call": (
        {**OK, "operation": {"type": "update_file", "path": "a.py", "diff": TEXT}}, "apply_patch_call_output",
        {**OK, "output": TEXT},
    ),
    "computer_call": (
        {**OK, "action": {"type": "type", "text": TEXT}, "pending_safety_checks": [{"id": "cu", "code": "c"}]},
        "computer_call_output", {"output": SCREEN},
    ),
    "tool_search_call": ({**CLIENT, "arguments": {"query": "calendar"}}, "tool_search_output", {**CLIENT, "tools": TOOLS}),
    "program": ({"code": TEXT, "fingerprint": "f" * 40}, "program_output", {**OK, "result": TEXT}),
    "lookup": ({"question": "Who?"}, "lookup_result", {"results": [{"passage": TEXT, "score": 0.5}]}),
}  # fmt: skip
"""By the type of the call: its fields, and the type and the fields of its output."""
WHOLE = {
    "mcp_call": {"server_label": "docs", "name": "search", "arguments": '{"q": "cache"}', "output": TEXT, "error": None},
    "failed mcp_call": {"server_label": "docs", "name": "search", "arguments": "{}", "output": None, "error": FAILURE},
    "code_interpreter_call": {
        **OK, "container_id": "cntr_1", "code": TEXT,
        "outputs": [{"type": "logs", "logs": TEXT}, {"type": "image", "url": "https://a.org/plot.png"}],
    },
    "file_search_call": {**OK, "queries": ["cache"], "results": FOUND},
    "web_search_call": {**OK, "action": SEARCH},
    "image_generation_call": {**OK, "result": PICTURE, "revised_prompt": TEXT},
    "mcp_approval_request": {"server_label": "docs", "name": "write", "arguments": '{"text": "TEXT"}'},
    "agent_message": {"author": "reviewer", "recipient": "lead", "content": [{"type": "input_text", "text": TEXT}] * 2},
    "server_search_call": {"execution": "server", "call_id": None, "arguments": {"paths": [TEXT]}},
    "notebook_cell": {"cells": [{"source": "print(1)", "rendered": [{"mime": "text/plain", "value": TEXT}]}]},
}  # fmt: skip
"""By their type, the fields of items that no other item answers."""
KINDS = (*PAIRS, *WHOLE)


def text_of(chars, seed=0):
    """Return lines that all differ, as output of a tool has."""
    return "\n".join(LINE.format(n=n) for n in range(seed * 1_000, seed * 1_000 + 1 + chars // len(LINE)))


def _filled(fields, text):
    """Return fields with a text in place of TEXT, in as many parts as it stands there."""
    held = json.dumps(fields).split(TEXT)
    size = len(text) // max(1, len(held) - 1) + 1
    parts = [text[at : at + size] for at in range(0, size * (len(held) - 1), size)]
    written = [json.dumps(part)[1:-1] for part in parts]
    if "arguments" in fields and isinstance(fields["arguments"], str):
        written = [json.dumps(part)[1:-1] for part in written]  # it is JSON within a text
    return json.loads("".join(piece for pair in zip(held, [*written, ""], strict=True) for piece in pair))


def made(kind, text, *, number=0, thought="", has_ids=True):
    """Return the items of one call of `kind`; their ids name the reasoning before them, as the fake provider's do."""
    prefix = "".join(c for c in kind if c.isalpha())
    own = {"id": f"{prefix}_{thought}_{number}" if thought else f"{prefix}_{number}"} if has_ids else {}
    if kind in WHOLE:
        return [{"type": kind.removeprefix("failed "), **own, **_filled(WHOLE[kind], text)}]
    asks, answer, gets = PAIRS[kind]
    call = {"call_id": f"call_{number}"}
    asks, gets = _filled({"asks": asks, "gets": gets}, text).values()
    return [{"type": kind, **own, **call, **asks}, {"type": answer, **call, **gets}]


def user(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def said(text, *, number=0, thought="", has_ids=True):
    own = {"id": f"msg_{thought}_{number}" if thought else f"msg_{number}"} if has_ids else {}
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", **own, "content": content}


def session(kind, *, calls=12, chars=8_000):
    """Return a user's request, that many calls of a kind with texts of that length, and the user's next words."""
    listed = (item for n in range(calls) for item in made(kind, text_of(chars, seed=n), number=n))
    return [user("Refactor the cache module and run the tests."), *listed, user("Now summarise what you found.")]


@st.composite
def conversations(draw, most_chars=12_000):
    """Draw a conversation of items of all kinds, with reasoning before some, and of several answers."""
    items, number = [user(draw(st.sampled_from(["Begin.", "Fix the tests.", text_of(600)])))], 0
    for turn in range(draw(st.integers(2, 6))):
        for step in range(draw(st.integers(1, 4))):
            thought = f"rs_{turn}{step}" if draw(st.booleans()) else ""
            own = {"thought": thought, "has_ids": bool(thought) or draw(st.booleans())}
            if thought:
                items.append({"type": "reasoning", "id": thought, "summary": [], "encrypted_content": "gAAAA" + "x" * 40})
            if draw(st.integers(0, 3)) == 0:
                items.append(said(draw(st.sampled_from(["I look.", text_of(900, 7)])), number=number, **own))
            calls = []
            for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)):
                number += 1
                calls.append(made(kind, text_of(draw(st.integers(40, most_chars)), seed=number), number=number, **own))
            items += [call[0] for call in calls]  # the model writes all its items before the client answers
            items += [answer for call in calls for answer in call[1:]]
        if draw(st.booleans()):
            items.append(said("Done.", number=number + 100))
        items.append(user(f"Go on, part {turn}."))
    return items if draw(st.booleans()) else items[:-1]
