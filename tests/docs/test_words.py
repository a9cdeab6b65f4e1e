"""The pages are few and short, and their words are those of the tables of terms and outcomes."""

import re
from typing import get_args

import pytest
from documentation import ROOT, pages

from ctx_hooks.telemetry.events import Outcome

MOST_PAGES, MOST_WORDS = 16, 18_000
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in pages()}
ROW = re.compile(r"^\| `?([a-z][\w -]*?)`? \|", re.MULTILINE)
REPLACED = (
    r"cut text|what (was|is) cut|rescu\w+|as (it|they) came|left alone|left as (it|they) (is|are)|(real|true|actual) tokens"
    r"|fake provider|customers?|safety margin|likewise|otherwise than"
)
"""Removed text, a retry, unchanged, provider tokens, a simulated provider, a tenant and the reserve have one name each."""


def prose(text):
    return re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)", "", text, flags=re.DOTALL)


def section(page, title):
    return TEXTS[page].split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_documentation_is_read_in_an_hour():
    of_docs = {name: text for name, text in TEXTS.items() if name != "README.md"}
    assert len(of_docs) <= MOST_PAGES
    assert sum(len(re.findall(r"\S*\w\S*", text)) for text in of_docs.values()) <= MOST_WORDS


def test_the_page_about_the_bill_is_short():
    assert len(TEXTS["docs/bill.md"].split()) <= 400


def test_each_term_is_used_and_every_outcome_is_explained():
    terms = [term for term in ROW.findall(section("docs/how_it_works.md", "Terms")) if term != "term"]
    used = " ".join(TEXTS.values()).lower().replace("_", " ")
    assert [term for term in terms if used.count(term) < 2] == []
    outcomes = [word for word in ROW.findall(section("docs/telemetry.md", "What a request ends in")) if word != "outcome"]
    assert outcomes == list(get_args(Outcome))


@pytest.mark.parametrize("name", TEXTS)
def test_a_page_has_no_word_that_another_replaces(name):
    assert [found[0] for found in re.finditer(rf"\b({REPLACED})\b", prose(TEXTS[name]), re.IGNORECASE)] == []
