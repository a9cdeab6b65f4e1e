"""Session files of Codex: `~/.codex/sessions/**/rollout-*.jsonl`.

The items of the Responses API stand there as they were sent and answered, and the usage of each request behind its answer.
A compaction by the client gives the items that it goes on with. The tools are not in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ctx_hooks.cli.replay.recorded import LeftOut, Recorded, Row
from ctx_hooks.formats.fields import mapping_or_empty, text_or_empty
from ctx_hooks.request.request import Request
from ctx_hooks.tokens.usage import Billed, billed_of

NAME = "Codex session"
LINES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})
ANSWERS = frozenset({"reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
"""Items that a model gives; so are the messages of its role."""
NOT_SENT = frozenset({"ghost_snapshot", "other"})
OWN_FIELD = "internal_chat_message_metadata_passthrough"
"""What the client notes of an item for itself."""


def recognises(fields: Mapping[str, Any]) -> bool:
    """Whether a row is one of a session file."""
    return text_or_empty(fields.get("type")) in LINES and isinstance(fields.get("payload"), Mapping)


def requests(rows: Iterable[Row]) -> Iterator[Recorded | LeftOut]:
    """Yield the request before each answer, with the usage that follows it."""
    session = _Session()
    for row in rows:
        before = session.waiting
        session.read(row.fields)
        if before is not None and session.waiting is not before:
            yield before if session.waiting is not None else replace(before, billed=session.billed)
    if session.waiting is not None:
        yield session.waiting


@dataclass(slots=True)
class _Session:
    """What has been read of a file: the items so far, and the newest request while its usage is not known."""

    name: str = ""
    model: str = ""
    instructions: str = ""
    items: list[Mapping[str, Any]] = field(default_factory=list)
    waiting: Recorded | None = None
    billed: Billed | None = None

    def read(self, line: Mapping[str, Any]) -> None:
        payload = mapping_or_empty(line.get("payload"))
        kind = line.get("type")
        if kind == "session_meta":
            self.name = self.name or text_or_empty(payload.get("id"))
            base = payload.get("base_instructions") or payload.get("instructions")
            self.instructions = base if isinstance(base, str) else text_or_empty(mapping_or_empty(base).get("text"))
        elif kind == "turn_context":
            self.model = text_or_empty(payload.get("model")) or self.model
        elif kind == "response_item" and text_or_empty(payload.get("type")) not in NOT_SENT:
            if _is_answer(payload) and not (self.items and _is_answer(self.items[-1])):
                self.waiting = self._request(text_or_empty(line.get("timestamp")))
            self.items.append({k: v for k, v in payload.items() if k != OWN_FIELD})
        elif kind == "compacted":
            self.items = self._compacted(payload)
        elif self.waiting is not None and (usage := _usage_of(line)) is not None:
            self.waiting, self.billed = None, usage

    def _request(self, started: str) -> Recorded:
        fields = {"instructions": self.instructions, "input": list(self.items)}
        request = Request("openai-responses", fields)
        return Recorded(request, session=self.name, model=self.model, has_all=False, started=started)

    def _compacted(self, payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the items that the client goes on with; older versions note the summary alone, and keep what was said."""
        items = payload.get("replacement_history")
        if isinstance(items, list):
            return [item for item in items if isinstance(item, Mapping)]
        said = [item for item in self.items if item.get("role") in ("user", "developer")]
        return [*said, {"type": "message", "role": "user", "content": text_or_empty(payload.get("message"))}]


def _is_answer(item: Mapping[str, Any]) -> bool:
    return text_or_empty(item.get("type")) in ANSWERS or item.get("role") == "assistant"


def _usage_of(line: Mapping[str, Any]) -> Billed | None:
    """Return the usage of one request that a line states: a record of its own, or in older versions an event."""
    payload = mapping_or_empty(line.get("payload"))
    stated = payload.get("usage") if line.get("type") == "token_usage_record" else None
    usage = mapping_or_empty(stated or mapping_or_empty(payload.get("info")).get("last_token_usage"))
    cached = {"cached_tokens": usage.get("cached_input_tokens")}
    return billed_of({**usage, "input_tokens_details": cached}) if usage else None
