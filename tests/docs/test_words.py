"""The main pages are short, and their words are the glossary's."""

import re
from typing import get_args

import pytest
from documentation import ROOT

from ctx_hooks.telemetry.events import Outcome

MAIN = (
    *("index", "install", "how_it_works", "policies", "recipes", "clients"),
    *("operations", "telemetry", "archive", "summaries", "security", "comparison"),
)  # fmt: skip
TEXTS = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in (*MAIN, "glossary")}
TERMS = re.findall(r"^\| ([a-z][\w -]*) \|", TEXTS["glossary"].replace("| term |", ""), re.MULTILINE)
REPLACED = (
    r"cut text|what (was|is) cut|rescu\w+|as (it|they) came|left alone|left as (it|they) (is|are)|(real|true|actual) tokens"
    r"|fake provider|customers?|safety margin|likewise|otherwise than"
)
"""Removed text, a retry, unchanged, provider tokens, a simulated provider, a tenant and the reserve have one name each."""


def prose(text):
    return re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)


def test_the_main_pages_are_read_in_an_hour():
    words = [len(TEXTS[name].split()) for name in MAIN]
    assert max(sum(words[:6]), sum(words[6:])) < 6_000
    assert {path.stem for path in (ROOT / "docs").glob("*.md")} == TEXTS.keys()


def test_each_term_of_the_glossary_is_used_and_what_a_request_ends_in_is_there():
    used = " ".join(TEXTS[name] for name in MAIN).lower().replace("_", " ")
    assert [term for term in TERMS if term not in used] == []
    assert TERMS[: len(get_args(Outcome))] == [outcome.replace("_", " ") for outcome in get_args(Outcome)]


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_has_no_word_that_another_replaces(name):
    assert [found[0] for found in re.finditer(rf"\b({REPLACED})\b", prose(TEXTS[name]), re.IGNORECASE)] == []
