"""Clients and a scripted model for tests of the hidden tool."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import assembled
import httpx
import pytest
from configurations import ENDS_WITH_DONE
from routes import CHAT, MESSAGES, RESPONSES, Route, events_of
from strategies import items_of

from ctx_hooks.testing import Call, Reply, agent_session
from ctx_hooks.testing.conversations import read_tool

TOOL = "ctx_retrieve"
LOOKING = "Let me look."
THOUGHT = "I should look at what was cut, before I answer."
FACT = "the vault opens at noon on every other tuesday"
TALK = "and so they went on with it for a good while\n"
HANDLE = re.compile(rf"{TOOL}\(([a-z2-7]{{12}})\)")


def seek(fmt: str, payload: Any, _: int) -> Reply:
    """Answer the newest question by its first word.

    `try HANDLE` asks for that handle, all others for what was cut: `always` each time, the others until it is known.
    """
    items = items_of(payload)
    text = json.dumps(items, ensure_ascii=False)
    thinking = "" if fmt == "openai-chat" else THOUGHT
    question = re.findall(r"(?:\b|\\n)question: ([^\"\\]*)", text)[-1]
    if TOOL not in json.dumps(payload.get("tools", [])):
        return Reply(f"no tool; {'ctx_retrieve' in text=}")
    if question.startswith("try "):
        said = json.dumps(items[-1], ensure_ascii=False)
        if "not available" in said or FACT in said:
            return Reply(f"I got: {said}")
        return Reply(calls=[Call(TOOL, {"handle": question.split()[1], "query": "vault"})], thinking=thinking)
    calls = [Call(TOOL, {"handle": handle, "query": "vault"}) for handle in dict.fromkeys(HANDLE.findall(text))]
    if question == "always":
        is_last = payload.get("tool_choice") in ("none", {"type": "none"})
        thinks = not is_last or fmt == "anthropic"  # reasoning alone would be refused back, of any server of Responses
        return Reply("" if is_last else LOOKING, calls=calls, thinking=thinking if thinks else "")
    if FACT in text:
        return Reply(f"It says that {FACT}.")
    return Reply(LOOKING, calls=calls, thinking=thinking)


def read_long_ago(client: Client, question: str, seed: int = 2) -> list[Any]:
    """Return the messages of an agent that has read the fact long ago, and is asked something."""
    payload = agent_session(client.route.fmt, turns=24, result_chars=1_500, seed=seed, question=f"question: {question}")
    messages = items_of(payload)
    listed = [*messages, *(b for m in messages for b in m.get("content") or () if isinstance(b, dict))]
    results = [i for i in listed if i.get("role") == "tool" or i.get("type") in ("tool_result", "function_call_output")]
    result = results[len(results) // 4]
    field = "output" if client.route is RESPONSES else "content"
    half = len(result[field]) // 2
    around = f"\n\n{TALK * 12}"  # what names nothing is cut before all else
    result[field] = f"{result[field][:half]}{around}{FACT}{around}{result[field][half:]}"
    return messages


def answered_requests(provider: Any) -> list[dict[str, Any]]:
    """Return what the provider read."""
    return [r for r in provider.requests() if r["status"] == 200]


@dataclass(frozen=True)
class Answer:
    """What a client sees of an answer: the messages that it sends back, why it ended, the billed tokens, text and bytes."""

    messages: list[dict[str, Any]]
    stop: str
    tokens: int
    text: str
    raw: str


@dataclass(frozen=True)
class Client:
    """A client of chat, messages or Responses, whose deployment speaks OpenAI's APIs or Anthropic's."""

    route: Route
    group: str
    stream: bool

    def payload(self, messages: list[Any]) -> dict[str, Any]:
        """Return a request; where clients send thinking back it asks for it: signatures and their place are checked."""
        asked = {"model": self.group, "tools": [read_tool(self.route.fmt)], "stream": self.stream}
        if self.route is RESPONSES:
            kept = {"store": False, "include": ["reasoning.encrypted_content"]}
            return {**asked, **kept, "input": messages, "max_output_tokens": 2000}
        thinks = self.route is MESSAGES and "claude" in self.group
        thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if thinks else {}
        shown = {"stream_options": {"include_usage": True}} if self.route is CHAT and self.stream else {}
        return {**asked, **thinking, **shown, "messages": messages, "max_tokens": 2000}

    def post(self, proxy: Any, messages: list[Any], team: str = "research") -> httpx.Response:
        return self.route.post(proxy, self.payload(messages), headers={"Authorization": f"Bearer sk-{team}"})

    def ask(self, proxy: Any, messages: list[Any], team: str = "research") -> Answer:
        answer = self.post(proxy, messages, team)
        assert answer.status_code == 200, answer.text
        if not self.stream:
            return whole(answer.json(), answer.text)
        ends = "data: [DONE]" in answer.text.splitlines()[-3:]
        assert ends or self.route is MESSAGES or not ENDS_WITH_DONE, answer.text[-600:]
        events = events_of(answer.text)
        if self.route is RESPONSES:  # those that LiteLLM makes of another provider's stream are less strict
            made = assembled.translated_responses(events) if "claude" in self.group else assembled.responses(events)
        else:
            made = assembled.chat(events) if self.route is CHAT else assembled.messages(events)
        return whole(made, answer.text)


CLIENTS = [
    Client(route, group, stream)
    for route in (CHAT, MESSAGES, RESPONSES)
    for group in ("chat", "claude")
    for stream in (False, True)
]
HALF, OTHER_HALF = ([c for n, c in enumerate(CLIENTS) if (n + n // 2) % 2 == half] for half in (0, 1))
"""Each route with each kind of deployment behind it, in one mode."""


def over(clients: list[Client]) -> pytest.MarkDecorator:
    names = [f"{c.route.fmt}-{c.group}-{'streamed' if c.stream else 'whole'}" for c in clients]
    return pytest.mark.parametrize("client", clients, ids=names)


def whole(body: dict[str, Any], raw: str) -> Answer:
    usage = body["usage"]
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    tokens = usage["total_tokens"] if "total_tokens" in usage else sum(usage.get(name) or 0 for name in names)
    if "choices" in body:
        (choice,) = body["choices"]
        message = choice["message"]
        return Answer([message], choice["finish_reason"], tokens, message.get("content") or "", raw)
    if "output" in body:
        calls = any(item["type"] == "function_call" for item in body["output"])
        stop = ("tool_calls" if calls else "stop") if body["status"] == "completed" else body["status"]
        blocks = [block for item in body["output"] if item["type"] == "message" for block in item["content"]]
        return Answer(body["output"], stop, tokens, text_of(blocks), raw)
    message = {"role": "assistant", "content": body["content"]}
    return Answer([message], body["stop_reason"], tokens, text_of(body["content"]), raw)


def text_of(blocks: list[dict[str, Any]]) -> str:
    return "\n\n".join(block["text"].strip() for block in blocks if "text" in block)
