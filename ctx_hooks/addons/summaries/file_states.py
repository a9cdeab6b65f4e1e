"""What the calls of a conversation say of the files whose state a summary states."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctx_hooks.compaction.summary.actions import actions_of
from ctx_hooks.conversation.model import Message

STATES = ("changed", "deleted", "read")
"""The words of the prompt for them, in whatever language the rest of a line is."""
_STATED = re.compile(
    rf"\W{{0,40}}(?:[0-9]{{1,3}}\W{{1,4}})?(`[^`]{{1,300}}`|[^\s`:]{{1,300}})\W{{1,6}}(?:only )?({'|'.join(STATES)})\b",
    re.IGNORECASE,
)
"""A line such as "- `src/app.py`: changed"."""


@dataclass(frozen=True, slots=True)
class FileStates:
    """The files that were changed or deleted, and read, by calls or by what the summary before states.

    Attributes:
        changed: the paths, as they are written; a change that failed is none.
        read: the paths.
        acting: the arguments of all calls that may do more than read: a command may change a file that it only names.
    """

    changed: frozenset[str]
    read: frozenset[str]
    acting: Sequence[str]

    def contradict(self, text: str) -> bool:
        """Whether a line says of a file that was only read that it was changed or deleted, or the reverse."""
        return any(self._contradict(path, state) for path, state in _stated_in(text))

    def _contradict(self, path: str, state: str) -> bool:
        is_changed = any(_is_same(path, file) for file in self.changed)
        if state == "read":
            return is_changed
        is_read = not is_changed and any(_is_same(path, file) for file in self.read)
        return is_read and not any(path.rsplit("/", 1)[-1] in arguments for arguments in self.acting)


def file_states(messages: Sequence[Message], before: str) -> FileStates:
    """Return the states of the files of these messages, behind what the summary before them states."""
    calls = [call for message in messages for call in message.calls]
    actions = actions_of(messages)
    stated = list(_stated_in(before))
    changed = {path for path, state in stated if state != "read"}
    changed.update(file for a in actions if a.kind == "changed" and not a.failed for file in a.files)
    read = {path for path, state in stated if state == "read"}
    read.update(file for a in actions if a.kind == "read" for file in a.files)
    acting = [call.arguments for call, a in zip(calls, actions, strict=True) if a.kind in ("changed", "ran")]
    return FileStates(frozenset(changed), frozenset(read), acting)


def _stated_in(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if found := _STATED.match(line):
            yield found[1].strip("`*_"), found[2].lower()


def _is_same(path: str, other: str) -> bool:
    """Whether two paths are the same as far as both say it: the end of a path is enough."""
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")
