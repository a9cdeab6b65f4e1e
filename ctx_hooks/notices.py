"""What the model is told where something was cut: that it was, why, and how to get it back. Never a silent cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.policy.settings import Language

MARK = "[ctx_hooks]"
"""Stands at the start of every notice, so that a text that already carries one is not cut a second time."""
GAP = "…"


def oversized(kept_chars: int, total_chars: int, language: Language) -> str:
    """Notice inside a single result that was larger than a result may be."""
    if language == "zh":
        return f"{MARK} 此输出过大,为适应上下文窗口,{total_chars:,} 个字符中仅保留 {kept_chars:,} 个。如需其余部分,请用 offset/limit 或更窄的范围重新调用该工具。"
    return (
        f"{MARK} This output was too large for the context window: {kept_chars:,} of {total_chars:,} characters are kept. "
        "For the rest call the tool again with offset/limit or a narrower range."
    )


def thinned(kept_lines: int, total_lines: int, language: Language) -> str:
    """Notice above the lines that an older result kept."""
    if language == "zh":
        return f"{MARK} 为节省上下文,保留 {kept_lines}/{total_lines} 行,需要时请重新调用。"
    return f"{MARK} {kept_lines} of {total_lines} lines kept to save context; repeat the call for all."


def removed(tool: str, arguments_digest: str, total_chars: int, language: Language) -> str:
    """Return the one line that stands for an older result: which tool, called with what, how large it was."""
    call = f"{tool}({arguments_digest})" if tool else arguments_digest
    if language == "zh":
        return f"{MARK} {call} 的输出({total_chars:,} 个字符)已移除以节省上下文,需要时请重新调用。"
    return f"{MARK} {call}: {total_chars:,} characters removed to save context; repeat the call if needed."


def repeated(tool: str, language: Language) -> str:
    """Return the pointer that stands for an earlier copy of a result that came again."""
    if language == "zh":
        return f"{MARK} {tool} 的相同输出在后文再次出现,此处省略。"
    return f"{MARK} The same {tool} output comes again below; this earlier copy was left out."


def shortened(total_chars: int, language: Language) -> str:
    """Notice inside a long older text."""
    if language == "zh":
        return f"{MARK} 原文 {total_chars:,} 个字符,中间部分已省略以节省上下文。"
    return f"{MARK} The middle of this text ({total_chars:,} characters) was removed to save context."


def media(kind: str, size_chars: int, language: Language) -> str:
    """Return the placeholder of an older image, sound or file."""
    if language == "zh":
        return f"{MARK} 较早的 {kind}({size_chars:,} 个字符)已移除以节省上下文。"
    return f"{MARK} An earlier {kind} ({size_chars:,} characters) was removed to save context."


def recalled(language: Language) -> str:
    """Return the line above what is put back of the earlier conversation."""
    if language == "zh":
        return f"{MARK} 与此相关的较早内容:"
    return f"{MARK} Earlier context that may matter here:"


def record_heading(messages: int, language: Language) -> str:
    """Return the first line of the record that stands for removed exchanges."""
    if language == "zh":
        return f"{MARK} 为适应上下文窗口,较早的 {messages} 条消息已移除。以下是其要点记录:"
    return f"{MARK} {messages} earlier messages were removed to fit the context window. What they were:"


def dropped(messages: int, language: Language) -> str:
    """Return what stands for messages that were removed without a record."""
    if language == "zh":
        return f"{MARK} 为适应上下文窗口,较早的 {messages} 条消息已移除。"
    return f"{MARK} {messages} earlier messages were removed to fit the context window."


RECORD_SECTIONS = {
    "en": {
        "requests": "Requests of the user",
        "files": "Files touched",
        "commands": "Commands run",
        "decisions": "Decisions stated",
        "errors": "Errors seen",
        "evidence": "Lines that may still matter",
    },
    "zh": {
        "requests": "用户的请求",
        "files": "涉及的文件",
        "commands": "运行过的命令",
        "decisions": "已作出的决定",
        "errors": "出现过的错误",
        "evidence": "可能仍然有用的内容",
    },
}
