"""Clients, a scripted model and a plugin for tests of the hidden tool: what is retrieved comes from a dictionary."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import assembled
import httpx
import pytest
from configurations import importable
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.litellm_compat import takes_its_items_back
from ctx_hooks.testing import LOOPBACK, Call, Reply, agent_session
from ctx_hooks.testing.rules import Format

TOOL = "ctx_retrieve"
HANDLES = ("aaaabbbbcccc", "ddddeeeeffff")
FACTS = ("the launch code is 4711", "the owner of the code is Ada")
UNKNOWN = "xxxxyyyyzzzz"
LARGE = "llllmmmmnnnn"
"""The handle of a text of some 9,000 tokens."""
HELD = "hhhhiiiijjjj"
"""The handle of a text that is returned once a byte is written to the gate."""
NOT_AVAILABLE = "This text is not available."
UNREADABLE = "The arguments are no JSON."
LOOKING = "Let me look."
FILE = "the body of the file"
THOUGHT = "I should look at what was cut, before I answer."

PLUGIN = f"""
import asyncio, json, os

import ctx_hooks
from ctx_hooks.serving.tool_rounds import ToolRounds
from litellm.integrations.custom_logger import CustomLogger

TEXTS = {{**dict(zip({HANDLES!r}, {FACTS!r})), {HELD!r}: {FACTS[0]!r}}}
TEXTS[{LARGE!r}] = {FACTS[0]!r} + "".join(f" The value {{n}} is {{n * n}}." for n in range(1_000))

def wait_at_gate():
    with open(os.environ["GATE"], "rb", buffering=0) as gate:
        gate.read(1)

class Dictionary:
    def __init__(self):
        self.records = {{}}

    def was_offered(self, request_id):
        return bool(request_id)

    async def answer(self, request_id, arguments):
        try:
            handle = json.loads(arguments)["handle"]
        except (ValueError, KeyError):
            return {UNREADABLE!r}
        if handle == {HELD!r}:
            await asyncio.to_thread(wait_at_gate)
        return TEXTS.get(handle, {NOT_AVAILABLE!r})

    async def answers(self, request_id, calls):
        return [await self.answer(request_id, arguments) for arguments in calls]

    async def originals(self, request_id, items):
        return items

    def forget(self, request_id):
        pass

    async def get(self, fields, keys):
        known = {{}} if fields["model"].endswith("-forgetful") else self.records
        return {{key: known[key] for key in keys if key in known}}

    async def put(self, fields, key, text):
        self.records[key] = text
        return True

class Logger(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        logged = kwargs["standard_logging_object"]
        told = [kwargs["litellm_call_id"], logged["metadata"]["user_api_key_hash"], logged["request_tags"]]
        print("billed", json.dumps(told), logged["total_tokens"], "end", flush=True)

handler = ctx_hooks.proxy_handler_instance
handler.flow.rounds = ToolRounds(Dictionary(), handler.flow.asked_again, handler.flow.usage, handler.flow.running)
logger = Logger()
"""


def plugin(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Write the plugin and make its gate, a named pipe; return LiteLLM's settings and the environment of its proxy."""
    gate = folder / "gate"
    os.mkfifo(gate)
    callbacks = ["retrieving_plugin.handler", "retrieving_plugin.logger"]
    return {"callbacks": callbacks, "num_retries": 0}, {**importable(folder, "retrieving_plugin", PLUGIN), "GATE": str(gate)}


def script(fmt: str, payload: Any, _: int) -> Reply:
    """Answer the newest task of the user as its first word says."""
    items = payload.get("messages") or payload["input"]
    asked = [(i, text) for i, item in enumerate(items) if (text := task_of(item))]
    at, task = asked[-1]
    since = json.dumps(items[at + 1 :])
    thinking = "" if fmt == "openai-chat" else THOUGHT
    look = tuple(Call(TOOL, {"handle": handle}) for handle in re.findall(r"handle (\w{12})", task))
    word = task.split()[0]
    known = [fact for fact in FACTS if fact in json.dumps(items)]
    told = [text for text in (NOT_AVAILABLE, UNREADABLE) if text in since]
    if word == "always":
        is_last = payload.get("tool_choice") in ("none", {"type": "none"})
        thinks = not is_last or fmt == "anthropic"  # reasoning alone would be refused back, of any server of Responses
        return Reply("" if is_last else LOOKING, calls=look, thinking=thinking if thinks else "")
    if word in ("fails", "mute") and known:
        raise RuntimeError("the model is broken")
    if word == "mute":
        return Reply(calls=look, thinking=thinking)
    if word == "broken" and not told:
        return Reply(LOOKING, calls=[Call(TOOL, '{"handle": ')], thinking=thinking)
    if word == "mixed" and FILE not in since:
        return Reply(LOOKING, calls=[Call("read_file", {"path": "a.py"}), *look], thinking=thinking)
    if word == "twice":
        done = sum(fact in since for fact in FACTS)
        return (
            Reply(f"{LOOKING} {done}", calls=look[done : done + 1], thinking=thinking) if done < len(look) else final(known)
        )
    if word in ("once", "fails") and not known and not told:
        return Reply(LOOKING, calls=look, thinking=thinking)
    return final([*known, *told])


FACT = "the vault opens at noon on every other tuesday"
HANDLE = re.compile(rf"{TOOL}\(([a-z2-7]{{12}})\)")


def seek(fmt: str, payload: Any, _: int) -> Reply:
    """Answer the newest question: `seek` asks for what was cut until it is known, `try HANDLE` asks for that handle."""
    items = payload.get("messages") or payload["input"]
    text = json.dumps(items, ensure_ascii=False)
    names = json.dumps(payload.get("tools", []))
    thinking = "" if fmt == "openai-chat" else THOUGHT
    question = re.findall(r"\bquestion: ([^\"\\]*)", text)[-1]
    if TOOL not in names:
        return Reply(f"no tool; {'ctx_retrieve' in text=}")
    if question.startswith("try "):
        said = json.dumps(items[-1], ensure_ascii=False)
        if "not available" in said or FACT in said:
            return Reply(f"I got: {said}")
        return Reply(calls=[Call(TOOL, {"handle": question.split()[1], "query": "vault"})], thinking=thinking)
    if FACT in text:
        return Reply(f"It says that {FACT}.")
    calls = [Call(TOOL, {"handle": handle, "query": "vault"}) for handle in dict.fromkeys(HANDLE.findall(text))]
    return Reply("Let me look.", calls=calls, thinking=thinking)


def read_long_ago(client: Client, question: str, seed: int = 2, turns: int = 24) -> list[Any]:
    """Return the messages of an agent that has read the fact long ago, and is asked something."""
    payload = agent_session(client.fmt, turns=turns, result_chars=2_000, seed=seed, question=f"question: {question}")
    messages = payload.get("messages") or payload["input"]
    listed = [*messages, *(b for m in messages for b in m.get("content") or () if isinstance(b, dict))]
    results = [i for i in listed if i.get("role") == "tool" or i.get("type") in ("tool_result", "function_call_output")]
    result = results[len(results) // 4]
    field = "output" if client.speaks_responses else "content"
    half = len(result[field]) // 2
    result[field] = f"{result[field][:half]}\n{FACT}\n{result[field][half:]}"
    return messages


def answered_requests(provider: Any) -> list[dict[str, Any]]:
    """Return what the provider read."""
    return [r for r in provider.requests() if r["status"] == 200]


def final(facts: list[str]) -> Reply:
    return Reply(f"I know: {'; '.join(facts)}")


def task_of(item: Any) -> str:
    """Return what a user's message asks, "" for all others."""
    content = item.get("content")
    blocks = [{"text": content}] if isinstance(content, str) else content or []
    texts = [b["text"] for b in blocks if isinstance(b.get("text"), str)] if item.get("role") == "user" else []
    return texts[-1] if texts else ""


@dataclass(frozen=True)
class Answer:
    """What a client sees of an answer: the messages that it sends back, why it ended, the bill, and all bytes."""

    messages: list[dict[str, Any]]
    stop: str
    usage: dict[str, Any]
    text: str
    raw: str


@dataclass(frozen=True)
class Client:
    """A client of chat, messages or Responses, whose deployment speaks OpenAI's APIs or Anthropic's."""

    path: str
    group: str
    stream: bool

    @property
    def speaks_chat(self) -> bool:
        return self.path == CHAT.path

    @property
    def fmt(self) -> Format:
        return next(route.fmt for route in (CHAT, MESSAGES, RESPONSES) if route.path == self.path)

    @property
    def speaks_responses(self) -> bool:
        return self.path == RESPONSES.path

    @property
    def thinking(self) -> dict[str, Any]:
        """Where clients send thinking back, it is asked for: then signatures and their place are checked."""
        if self.speaks_responses:
            return {"include": ["reasoning.encrypted_content"]}
        thinks = not self.speaks_chat and "claude" in self.group
        return {"thinking": {"type": "enabled", "budget_tokens": 1024}} if thinks else {}

    def payload(self, messages: list[Any], **fields: Any) -> dict[str, Any]:
        tools = [self.tool(name) for name in ("read_file", TOOL)]
        asked = {"model": self.group, "tools": tools, "stream": self.stream, **self.thinking}
        if self.speaks_responses:
            own = {"input": messages, "max_output_tokens": 2000, "store": False, **fields}
            return asked | {name: value for name, value in own.items() if value is not None}
        shown = {"stream_options": {"include_usage": True}} if self.speaks_chat and self.stream else {}
        return {**asked, "messages": messages, "max_tokens": 2000, **shown, **fields}

    def tool(self, name: str) -> dict[str, Any]:
        """Return the definition of a tool."""
        if self.path == MESSAGES.path:
            return {"name": name, "description": "reads", "input_schema": {"type": "object"}}
        function = {"name": name, "parameters": {"type": "object"}}
        return {"type": "function", **function} if self.speaks_responses else {"type": "function", "function": function}

    def post(self, proxy: Any, messages: list[Any], **fields: Any) -> httpx.Response:
        return LOOPBACK.post(proxy.url + self.path, json=self.payload(messages, **fields), headers=proxy.headers, timeout=60)

    def ask(self, proxy: Any, messages: list[Any], **fields: Any) -> Answer:
        answer = self.post(proxy, messages, **fields)
        assert answer.status_code == 200, answer.text
        if not self.stream:
            return whole(answer.json(), answer.text)
        lines = [line[len("data:") :].strip() for line in answer.text.splitlines() if line.startswith("data:")]
        events = [json.loads(line) for line in lines if line != "[DONE]"]
        assert lines[-1] == "[DONE]" or self.path == MESSAGES.path, answer.text[-600:]
        return whole(self.put_together(events), answer.text)

    def put_together(self, events: list[Any]) -> dict[str, Any]:
        """Return the answer that events bring; those of Responses that LiteLLM makes of chat are less strict."""
        if not self.speaks_responses:
            return assembled.chat(events) if self.speaks_chat else assembled.messages(events)
        return assembled.translated_responses(events) if "claude" in self.group else assembled.responses(events)

    def file_result(self, answer: Answer) -> dict[str, Any]:
        """Return the message that answers the client's own call."""
        if self.speaks_responses:
            (call,) = [item for item in answer.messages if item["type"] == "function_call"]
            return {"type": "function_call_output", "call_id": call["call_id"], "output": FILE}
        (message,) = answer.messages
        if self.speaks_chat:
            (call,) = message["tool_calls"]
            return {"role": "tool", "tool_call_id": call["id"], "content": FILE}
        (use,) = [b for b in message["content"] if b["type"] == "tool_use"]
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": FILE}]}


CLIENTS = [
    Client(path, group, stream)
    for path in (CHAT.path, MESSAGES.path, RESPONSES.path)
    for group, model in (("chat", "openai/served"), ("claude", "anthropic/served"))
    for stream in (False, True)
    if path != RESPONSES.path or takes_its_items_back(model)  # nothing is offered there of an older LiteLLM
]
HALF, OTHER_HALF = ([c for n, c in enumerate(CLIENTS) if (n + n // 2) % 2 == half] for half in (0, 1))
"""Each route with each kind of deployment behind it, in one mode."""


def over(clients: list[Client]) -> pytest.MarkDecorator:
    names = (f"{c.path.rsplit('/', 1)[1]}-{c.group}-{'streamed' if c.stream else 'whole'}" for c in clients)
    return pytest.mark.parametrize("client", clients, ids=list(names))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def whole(body: dict[str, Any], raw: str) -> Answer:
    if "choices" in body:
        (choice,) = body["choices"]
        message = choice["message"]
        return Answer([message], choice["finish_reason"], body["usage"], message.get("content") or "", raw)
    if "output" in body:
        blocks = [block for item in body["output"] if item["type"] == "message" for block in item["content"]]
        calls = any(item["type"] == "function_call" for item in body["output"])
        stop = ("tool_calls" if calls else "stop") if body["status"] == "completed" else body["status"]
        return Answer(body["output"], stop, body["usage"], text_of(blocks), raw)
    message = {"role": "assistant", "content": body["content"]}
    text = text_of([b for b in body["content"] if b["type"] == "text"])
    return Answer([message], body["stop_reason"], body["usage"], text, raw)


def text_of(blocks: list[dict[str, Any]]) -> str:
    return "\n\n".join(block["text"].strip() for block in blocks)


def total_tokens(usage: dict[str, Any]) -> int:
    """Return input and output of a usage record, what the cache served included."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return usage["total_tokens"] if "total_tokens" in usage else sum(usage.get(name) or 0 for name in names)
