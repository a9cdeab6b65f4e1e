"""Session files of Claude Code: `~/.claude/projects/*/*.jsonl`, one session or one side chain of it a file.

Each line names the one before it, so that a session is a tree: where the user goes back, a branch begins, and a side chain
of an agent has a root of its own. An answer is written block by block, a line each, with the same id. A compaction by the
client is a line without a parent, behind which the history begins anew. System prompt and tools are not in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctx_hooks.cli.replay.recorded import LeftOut, Recorded, Row
from ctx_hooks.formats.fields import mapping_or_empty, text_or_empty
from ctx_hooks.overflow.recognise import recognise_overflow
from ctx_hooks.request.request import Request
from ctx_hooks.tokens.usage import billed_of

NAME = "Claude Code session"
OWN_MODEL = "<synthetic>"
"""Stands for the model where the client itself says something, such as the provider's error."""


def recognises(fields: Mapping[str, Any]) -> bool:
    """Whether a row is one of a session file."""
    return "sessionId" in fields and "type" in fields


def requests(rows: Iterable[Row]) -> Iterator[Recorded | LeftOut]:
    """Yield the request before each answer, and each that was refused as too long."""
    tree = _Tree()
    for row in rows:
        line = row.fields
        if line.get("type") == "assistant" and _is_first_of_request(line, tree):
            yield _recorded(line, tree)
        tree.add(line)


def _is_first_of_request(line: Mapping[str, Any], tree: _Tree) -> bool:
    message = mapping_or_empty(line.get("message"))
    if message.get("model") == OWN_MODEL:
        return recognise_overflow(_text_of(message)) is not None
    return text_or_empty(message.get("id")) not in tree.answers


def _recorded(line: Mapping[str, Any], tree: _Tree) -> Recorded:
    message = mapping_or_empty(line.get("message"))
    was_refused = message.get("model") == OWN_MODEL
    session = text_or_empty(line.get("sessionId"))
    if line.get("isSidechain"):
        session = f"{session}, agent {line.get('agentId') or str(tree.root_of(line))[:8]}"
    return Recorded(
        Request("anthropic", {"messages": tree.messages_before(line)}),
        session=session,
        model="" if was_refused else text_or_empty(message.get("model")),
        billed=None if was_refused else billed_of(message.get("usage")),
        was_refused=was_refused,
        has_all=False,
        started=text_or_empty(line.get("timestamp")),
    )


def _text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    return " ".join(text_or_empty(mapping_or_empty(block).get("text")) for block in blocks)


def _attached_text(attachment: Mapping[str, Any]) -> str:
    """Return what the client adds to a turn of the user, such as a file that it names or reads again after a compaction."""
    content = attachment.get("content")
    return text_or_empty(content) or text_or_empty(mapping_or_empty(mapping_or_empty(content).get("file")).get("content"))


@dataclass(slots=True)
class _Tree:
    """The lines of a file by their ids, the blocks of each answer, and the results of each call."""

    lines: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any]) -> None:
        """Add the next line of the file."""
        self.lines[str(line.get("uuid"))] = line
        message = mapping_or_empty(line.get("message"))
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        if line.get("type") == "assistant" and message.get("model") != OWN_MODEL:
            known = self.answers.setdefault(text_or_empty(message.get("id")), {"role": "assistant", "content": []})
            known["content"] = [*known["content"], *(blocks or [{"type": "text", "text": text_or_empty(content)}])]
        elif line.get("type") == "user":
            results = [b for b in map(mapping_or_empty, blocks) if b.get("type") == "tool_result"]
            self.results.update((text_or_empty(b.get("tool_use_id")), b) for b in results)

    def root_of(self, line: Mapping[str, Any]) -> str | None:
        """Return the id of the first line of a line's chain."""
        *_, first = self._chain(line)
        return text_or_empty(first.get("uuid"))

    def messages_before(self, line: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the messages that led to a line.

        Calls that are made at once may stand on branches of their own, of which one leads on. So the blocks and the results
        of an answer are those of all its lines.
        """
        messages: list[dict[str, Any]] = []
        answered: set[str] = set()
        given: set[str] = set()
        for before in reversed([*self._chain(line)][1:]):
            message = mapping_or_empty(before.get("message"))
            name = text_or_empty(message.get("id"))
            if before.get("type") == "assistant" and message.get("model") != OWN_MODEL and name not in answered:
                answered.add(name)
                answer = self.answers[name]
                messages.append({"role": "assistant", "content": answer["content"]})
                blocks = map(mapping_or_empty, answer["content"])
                calls = [text_or_empty(b.get("id")) for b in blocks if b.get("type") == "tool_use"]
                results = [self.results[call] for call in calls if call and call in self.results]
                given.update(text_or_empty(b.get("tool_use_id")) for b in results)
                messages += [{"role": "user", "content": results}] if results else []
            elif before.get("type") == "attachment":
                text = _attached_text(mapping_or_empty(before.get("attachment")))
                messages += [{"role": "user", "content": text}] if text else []
            elif before.get("type") == "user":
                content = message.get("content")
                rest = content
                if isinstance(content, list):
                    rest = [b for b in content if text_or_empty(mapping_or_empty(b).get("tool_use_id")) not in given]
                messages += [{"role": "user", "content": rest}] if rest else []
        return messages

    def _chain(self, line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield a line and those before it, up to its root; a line that names itself ends it."""
        seen: set[str] = set()
        found: Mapping[str, Any] | None = line
        while found is not None and str(found.get("uuid")) not in seen:
            seen.add(str(found.get("uuid")))
            yield found
            found = self.lines.get(str(found.get("parentUuid")))
