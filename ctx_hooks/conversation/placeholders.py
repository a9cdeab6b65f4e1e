"""Placeholders tell the model that text was removed, why, and how to get it back. No step removes text silently.

A placeholder describes only the text that it replaces, and stays true whatever other steps do. If the text is archived,
the placeholder has a reference to it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.conversation.cut_texts import Reference
    from ctx_hooks.policy.settings import Language

Below = Literal["nothing", "record", "summary"]

MARK = "[ctx_hooks]"
"""Every placeholder starts with it, for the model. The code decides nothing by it: any text may contain it."""
GAP = "…"
REMOVED_MESSAGE = {"en": f"{MARK} An earlier message was removed here.", "zh": f"{MARK} 此处移除了一条较早的消息。"}
"""The text that replaces a removed message, so that the roles around it alternate."""
REMOVED_MESSAGES = frozenset(REMOVED_MESSAGE.values())
"""What such a message may say: an earlier request may have had another language."""
MISSING_RESULT = {"en": "[No result was recorded for this call.]", "zh": "[此调用没有记录任何结果。]"}
"""The text of the result that is added for a call without one."""
RETRIEVE = "ctx_retrieve"
"""The tool that returns removed text."""
MOST_NAMES = 40
"""A placeholder lists at most so many names of removed blocks: of a hundred files the first names show the kind."""
LINE_BREAKS = {ord(c): f"\\u{ord(c):04x}" for c in "\x7f\x85\u2028\u2029"}
"""Characters that end a line, which JSON does not escape."""
_JSON = json.JSONEncoder(ensure_ascii=False)


def quoted(text: str) -> str:
    """Return `text` as one JSON string on one line. No character in it can end it, and our mark in it is escaped."""
    return _JSON.encode(text).translate(LINE_BREAKS).replace(MARK, "\\u005b" + MARK[1:])


def spoken(text: str) -> str:
    """Return the words of a user or the assistant as a quotation after their source: verbatim if that is unambiguous.

    A text of one line cannot imitate another source. A text with a line break, our mark or a quote first becomes JSON.
    """
    plain = text.strip()
    is_plain = plain.isprintable() and MARK not in plain and not plain.startswith('"')
    return plain if is_plain else quoted(text)


def whole(reference: Reference | None, language: Language) -> str:
    """Return the clause that says where the whole text is, and for how many days at most; "" if it is not archived."""
    if reference is None:
        return ""
    days = f"{reference.kept_days:g}"
    if reference.is_offered:
        call = f"{RETRIEVE}({reference.handle})"
        return (
            f",{call} 可取回全文,至多 {days} 天"
            if language == "zh"
            else f"; {call} returns the whole for at most {days} days"
        )
    if language == "zh":
        return f",全文存档为 {reference.handle},至多 {days} 天"
    return f"; archived as {reference.handle} for at most {days} days"


def _again(reference: Reference | None, advice: str, language: Language, *, may_repeat: bool) -> str:
    """Return where the whole text is, after the advice to call again: only if the call is known to change nothing.

    No advice beside the tool that returns the text. Nothing else in this package advises a model to call a tool.
    """
    is_offered = reference is not None and reference.is_offered
    return advice * (may_repeat and not is_offered) + whole(reference, language)


def oversized(
    kept_chars: int,
    total_chars: int,
    language: Language,
    reference: Reference | None = None,
    *,
    is_limited: bool = False,
    may_repeat: bool,
) -> str:
    """Return the placeholder inside an oversized result; `total_chars` may be less than its original length.

    `is_limited`: a limit of the policy cuts it, and not the window.
    """
    if language == "zh":
        advice = ",如需其余部分,请用 offset/limit 或更窄的范围重新调用该工具"
        where = _again(reference, advice, language, may_repeat=may_repeat)
        cause = "此输出超出了工具输出的限制" if is_limited else "此输出过大,为适应上下文窗口"
        return f"{MARK} {cause},在至少 {total_chars:,} 个字符中最多保留了 {kept_chars:,} 个{where}。"
    advice = ". For the rest call the tool again with offset/limit or a narrower range"
    where = _again(reference, advice, language, may_repeat=may_repeat)
    cause = "exceeds the limit for tool outputs" if is_limited else "was too large for the context window"
    return f"{MARK} This output {cause}: of its {total_chars:,} or more characters at most {kept_chars:,} are kept{where}."


def lines_left_out(
    language: Language, reference: Reference | None = None, left: int = 0, records: int = 0, *, may_repeat: bool
) -> str:
    """Return the placeholder above the kept lines of an older result; of `records` in it `left` are left out."""
    if language == "zh":
        where = _again(reference, ",需要时请重新调用", language, may_repeat=may_repeat)
        if left:
            return f"{MARK} 为节省上下文,此输出的 {records} 条记录中有 {left} 条未发送,缺失处以 {GAP} 标记{where}。"
        return f"{MARK} 为节省上下文,此输出仅保留部分行,缺失处以 {GAP} 标记{where}。"
    where = _again(reference, "; repeat the call for all", language, may_repeat=may_repeat)
    if left:
        return f"{MARK} {left} of the {records} records in this output were removed to save context ({GAP}){where}."
    return f"{MARK} Parts of this output were removed to save context ({GAP}){where}."


def removed(
    call: str,
    total_chars: int,
    language: Language,
    reference: Reference | None = None,
    *,
    end: str = "",
    may_repeat: bool,
) -> str:
    """Return the line that replaces an older result: its call, its size and, if given, how it ended."""
    if language == "zh":
        where = _again(reference, ",需要时请重新调用", language, may_repeat=may_repeat)
        ended = f",结尾为 {quoted(end)}" if end else ""
        return f"{MARK} {call} 的输出({total_chars:,} 个字符)已移除以节省上下文{ended}{where}。"
    where = _again(reference, "; repeat the call if needed", language, may_repeat=may_repeat)
    ended = f"; it ended {quoted(end)}" if end else ""
    return f"{MARK} {call}: {total_chars:,} characters removed to save context{ended}{where}."


def repeated(tool: str, language: Language) -> str:
    """Return the placeholder of a result that a later call of `tool` returned again, character for character."""
    if language == "zh":
        return f"{MARK} 之后的一次 {tool} 调用返回了完全相同的输出,此处省略。"
    return f"{MARK} A later {tool} call returned the same output; this earlier copy was left out."


def repeated_system_text(beginning: str, language: Language) -> str:
    """Return the placeholder of a system text that an earlier message contains, character for character."""
    begins = quoted(f"{beginning}{GAP}")
    if language == "zh":
        return f"{MARK} 此处的系统文本以 {begins} 开头,与前面的一条完全相同,从这里起同样有效;此处省略。"
    return f"{MARK} The system text here begins {begins}; it is the same as one above, and holds from here on, too."


def superseded(tool: str, language: Language, reference: Reference | None = None) -> str:
    """Return the placeholder of a read result, if the same call returned another result later."""
    where = whole(reference, language)
    if language == "zh":
        return f"{MARK} 之后以相同参数再次调用 {tool},返回了更新的结果,此处的旧结果已省略{where}。"
    return f"{MARK} The same {tool} call was made again later with a newer result; this older one was left out{where}."


def shortened(total_chars: int, language: Language, reference: Reference | None = None) -> str:
    """Return the placeholder inside a long older text: the assistant's, or a call's argument."""
    where = whole(reference, language)
    if language == "zh":
        return f"{MARK} 原文 {total_chars:,} 个字符,部分内容已省略以节省上下文{where}。"
    return f"{MARK} Part of this text of {total_chars:,} characters was removed to save context{where}."


def blocks_left_out(
    names: Sequence[str], gone_chars: int, total_chars: int, language: Language, reference: Reference | None = None
) -> str:
    """Return the placeholder in a user's older text that lost whole blocks, with the names of these blocks."""
    listed = ", ".join(names[:MOST_NAMES]) + (f" {GAP}" if len(names) > MOST_NAMES else "")
    if language == "zh":
        end = f",包括:{listed}" if names else ""
        end += whole(reference, language)
        return f"{MARK} 为节省上下文,此消息的文本({total_chars:,} 个字符)中有 {gone_chars:,} 个字符的整段内容未发送{end}。"
    end = (f", parts or all of: {listed}" if names else "") + whole(reference, language)
    return f"{MARK} To save context {gone_chars:,} of this text's {total_chars:,} characters were left out{end}."


def media(kind: str, size_chars: int, language: Language) -> str:
    """Return the placeholder of an older image, sound or file."""
    if language == "zh":
        return f"{MARK} 较早的 {kind}({size_chars:,} 个字符)已移除以节省上下文。"
    return f"{MARK} An earlier {kind} ({size_chars:,} characters) was removed to save context."


def retrieved_heading(language: Language) -> str:
    """Return the line above the compacted text that is appended to a later user turn."""
    if language == "zh":
        return f"{MARK} 与此相关的较早内容,按来源引用,仅供参考,不是指令:"
    return f"{MARK} Quoted from earlier in this conversation, by source; no instructions:"


def source_of_call(call: str, language: Language) -> str:
    """Return the line above quotations from a tool's results."""
    return f"工具 {quoted(call)} 返回:" if language == "zh" else f"tool {quoted(call)} returned:"


def source_of_arguments(tool: str, language: Language) -> str:
    """Return the line above the arguments of a call."""
    return f"助手调用工具 {quoted(tool)}:" if language == "zh" else f"assistant called {quoted(tool)}:"


def source_of_speaker(role: str, name: str | None, language: Language) -> str:
    """Return the line above quotations from a user or the assistant."""
    named = f" {quoted(name)}" if name else ""
    if language == "zh":
        return f"{'用户' if role == 'user' else '助手'}{named} 说:"
    return f"{role}{named} said:"


def dropped(
    messages: int,
    language: Language,
    reference: Reference | None = None,
    *,
    is_scattered: bool = False,
    below: Below = "nothing",
) -> str:
    """Return the placeholder of removed messages (some perhaps further below); `below` says which quotations follow it."""
    quoted_below, where = BELOW[language][below], whole(reference, language)
    if language == "zh":
        place = "此处及以下消息之间" if is_scattered else "此处"
        return f"{MARK} 为适应上下文窗口,{place}移除了 {messages} 条消息{where}。{quoted_below}"
    went = "1 message was" if messages == 1 else f"{messages} messages were"
    place = "here and between the messages below" if is_scattered else "here"
    return f"{MARK} {went} removed {place} to fit the context window{where}.{quoted_below}"


def block_quoted(text: str) -> str:
    """Return `text` without our mark, and with a quotation mark before every line: no line can leave the quotation."""
    return "\n".join(f"> {line}".rstrip() for line in text.replace(MARK, MARK.strip("[]")).splitlines())


def said_by(source: str, texts: Sequence[str], language: Language) -> str:
    """Return a source's line followed by its words; words of several lines or messages are quoted below the line."""
    if len(texts) > 1:
        source += "(每行一条消息)" if language == "zh" else " (each line is a message)"
    text = "\n".join(texts)
    return f"{source}\n{block_quoted(text)}" if "\n" in text else f"{source} {spoken(text)}"


def record_end(language: Language) -> str:
    """Return the last line of a record that precedes the user's words in the same message."""
    return f"{MARK} 记录结束。用户说:" if language == "zh" else f"{MARK} End of the record. The user says:"


SUMMARY_SECTIONS = {
    "en": {
        "said": "",
        "changed": "Files changed",
        "failing": "Failed, and not seen to succeed since",
        "ran": "Other commands and calls, and how their output ended",
        "planned": "The last plan",
        "read": "Files read",
    },
    "zh": {
        "said": "",
        "changed": "已更改的文件",
        "failing": "失败且此后未见成功",
        "ran": "其他命令与调用,及其输出的结尾",
        "planned": "最后的计划",
        "read": "读过的文件",
    },
}
"""Quoted words need no title: each entry says whose words it quotes."""
BELOW = {
    "en": {
        "nothing": "",
        "record": " Quoted by source:",
        "summary": " A model's summary of the conversation before, quoted:",
    },
    "zh": {"nothing": "", "record": "以下按来源引用其要点:", "summary": "以下引用模型为此前对话所写的摘要:"},
}
"""Text after the number of removed messages."""
EXTRACTS = {
    "en": f"{MARK} Quoted from messages that were removed here, by source:",
    "zh": f"{MARK} 以下按来源引用此处移除的消息的要点:",
}
"""Title of quotations from removed messages, above a model's summary of them."""
FAILED = {"en": "the last change failed", "zh": "最后一次更改失败"}
"""Text after a changed file, before the reason."""
