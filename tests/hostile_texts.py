"""Kinds of text that tools return, at any length, among them kinds that are slow to read or misleading.

>>> kinds["hex, lines"](10)
'dc6486c479'

Every kind is deterministic and has exactly the length that is asked for. `behind_header` puts the response header of
`curl -i`, with its carriage returns, in front of any of them.
"""

import json
import random
import string
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

Kind: TypeAlias = Callable[[int], str]
"""Returns a text of the given number of characters."""

HEADER = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nserver: nginx/1.25.3\r\nx-request-id: 7f3a\r\n\r\n"
RANDOM_CHARS = 65_536
"""Random text repeats after this length: drawing a million characters takes longer than the tests that use them."""


def behind_header(kind: Kind) -> Kind:
    """Return the kind behind the header of an HTTP response, whose lines end in CR LF."""
    return lambda chars: (HEADER + kind(max(0, chars - len(HEADER))))[:chars]


def _repeated(unit: str) -> Kind:
    return lambda chars: (unit * (chars // len(unit) + 1))[:chars]


def _drawn(alphabet: str, end: str = "", line_chars: int = RANDOM_CHARS) -> Kind:
    """Return random characters of the alphabet, with `end` behind every `line_chars` of them."""

    @cache
    def make(chars: int) -> str:
        draw = random.Random(0)
        lines = ("".join(draw.choices(alphabet, k=line_chars)) + end for _ in range(RANDOM_CHARS // line_chars))
        return _repeated("".join(lines))(chars)

    return make


def _numbered(line: str) -> Kind:
    """Return lines that differ in `{n}` and `{hash}`."""

    def make(chars: int) -> str:
        return _joined((line.format(n=n, hash=f"{n * 2_654_435_761 % 2**32:08x}") for n in range(chars)), chars)

    return make


def _joined(pieces: Iterator[str], chars: int) -> str:
    found: list[str] = []
    length = 0
    while length < chars:
        found.append(next(pieces))
        length += len(found[-1])
    return "".join(found)[:chars]


def _nested(opening: str, closing: str) -> Kind:
    def make(chars: int) -> str:
        depth = chars // (len(opening) + len(closing))
        return (opening * depth + closing * depth).ljust(chars)

    return make


def _json(*, indent: int | None, depth: int = 1) -> Kind:
    """Return a JSON array of objects, whole whatever its length; at a greater depth as a string in JSON."""

    def make(chars: int) -> str:
        rows = [{"id": n, "name": f"user {n}", "tags": ["a", "b\n"], "score": n / 7} for n in range(200)]
        value: object = rows
        for _ in range(depth - 1):
            value = {"body": json.dumps(value)}
        unit = json.dumps(value, indent=indent)
        return ("[" + ",\n".join([unit] * max(1, (chars - 2) // (len(unit) + 2))) + "]").ljust(chars)[:chars]

    return make


REPEATED = {
    "Chinese": "今天的日志显示数据库连接在凌晨三点超时,重试后恢复。\n",
    "Chinese, one line": "今天的日志显示数据库连接在凌晨三点超时重试后恢复",
    "Thai": "บันทึกวันนี้แสดงว่าการเชื่อมต่อฐานข้อมูลหมดเวลาเมื่อตีสาม\n",
    "Arabic": "تظهر سجلات اليوم أن اتصال قاعدة البيانات انقطع في الثالثة صباحا.\n",
    "Russian": "Журнал показывает, что соединение с базой данных прервалось в три часа ночи.\n", "emoji": "🚀🔥✅😀",
    "emoji, joined": "👩‍👩‍👧‍👦🏳️‍🌈👩🏽‍🚀", "combining marks": "e\u0301o\u0308\u0323a\u0300\u0301\u0302",
    "combining marks only": "\u0301", "one letter": "a", "underscores": "_", "dashes": "-", "dots": ".", "slashes": "/",
    "equals signs": "=", "backslashes": "\\", "quotes": '"', "escaped quotes": '\\"', "opening brackets": "[",
    "brackets and commas": "[],{}", "name and dashes": "a" + "-" * 200 + " ", "blanks": " ",
    "blanks before a letter": " " * 999 + "x\n", "tabs": "\t", "newlines": "\n", "newlines and blanks": "\n \n\t",
    "no-break spaces": "\u00a0\u3000", "zero-width spaces": "\u200b\ufeff", "vertical tabs and form feeds": "\x0b\x0c",
    "file and record separators": "a\x1c\x1d\x1e", "next line, line separators": "a\x85\u2028\u2029", "NULs": "\x00",
    "lone surrogates": "\ud800\udfff\udc00", "carriage returns": "\r", "carriage returns and letters": "a\r",
    "escapes only": "\x1b", "colours only": "\x1b[0m", "unterminated sequence": "\x1b[0;",
    "unterminated title": "\x1b]0;title ", "errors, lines": "error error error\n", "errors, one line": "error ",
    "names of one form": "a_1.b-2/c#3:d@4", "truncation_skip in a text": '{"truncation_skip": true} ',
}  # fmt: skip
"""What stands again and again in a text, by the name of its kind."""

kinds: Mapping[str, Kind] = MappingProxyType(
    {
        **{name: _repeated(unit) for name, unit in REPEATED.items()},
        "prose": _numbered("The quick brown fox jumps over {n} lazy dogs, and nobody knows why it should.\n"),
        "letters, one line": _drawn(string.ascii_letters),
        "upper case, one line": _drawn(string.ascii_uppercase),
        "hex, one line": _drawn("0123456789abcdef"),
        "hex, lines": _drawn("0123456789abcdef", "\n", 64),
        "figures, one line": _drawn(string.digits),
        "base64, one line": _drawn(string.ascii_letters + string.digits + "+/"),
        "random bytes as text": _drawn("".join(map(chr, range(256)))),
        "brackets, nested": _nested("[", "]"),
        "objects, nested": _nested('{"a":', "}"),
        "CR LF lines": _numbered("line {n} of the output\r\n"),
        "coloured log": _numbered("\x1b[32mINFO\x1b[0m 12:00:00 worker \x1b[1;34m{n}\x1b[0m done in {hash}\n"),
        "progress bar with erased lines": _numbered("\x1b[2K\rDownloading {n} ({hash})"),
        "unterminated sequence, one": lambda chars: ("\x1b[" + "1" * chars)[:chars],
        "unterminated title, one": lambda chars: ("\x1b]0;" + "x" * chars)[:chars],
        "log": _numbered("2026-01-05T12:00:00Z INFO worker-{n} served /api/v1/items/{hash} in {n} ms\n"),
        "stack traces": _numbered('Traceback (most recent call last):\n  File "a_{n}.py", line {n}\nValueError: {hash}\n'),
        "JSON, one line": _json(indent=None),
        "JSON, indented": _json(indent=4),
        "JSON in JSON": _json(indent=2, depth=4),
        "minified JavaScript": _numbered("var a{n}=function(t,e){{return t?e[{n}]:void 0}},b=/x+/g;"),
        "XML, one line": _numbered('<item id="{n}"><name>{hash}</name></item>'),
        "dotted names": _numbered("com.example.module_{n}.Class{hash}.method"),
        "placeholders": _numbered("[ctx_hooks] {n} of {n} lines kept to save context; repeat the call for all.\n… "),
    }
)
"""Each kind of text by its name."""
