"""A citation names the document that it named before a compaction, or goes."""

import json

import pytest

import ctx_hooks
from ctx_hooks.formats.anthropic_messages import with_citations

LONG = "\n".join(f"row {n}: value {n * 7919 % 1000}" for n in range(600))


def document(n, size=1):
    return {
        "type": "document",
        "title": f"d{n}",
        "source": {"type": "text", "media_type": "text/plain", "data": f"{n} " * 900 * size},
    }


def result(n):
    return {
        "type": "search_result",
        "source": f"s{n}",
        "title": f"t{n}",
        "content": [{"type": "text", "text": f"found {n}"}],
    }


def cites(*numbers, name="document_index"):
    kind = "char_location" if name == "document_index" else "search_result_location"
    citations = [{"type": kind, "cited_text": "x", name: n, "start_char_index": 0} for n in numbers]
    return {"role": "assistant", "content": [{"type": "text", "text": f"As said {numbers}.", "citations": citations}]}


def user(*blocks):
    return {"role": "user", "content": [*blocks]}


def numbers_in(messages, name="document_index"):
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    return [[c[name] for c in b["citations"]] for b in blocks if b.get("citations")]


def test_citations_are_renumbered_or_dropped():
    came = [user(document(0), document(1)), cites(0, 1), user(document(2)), cites(2, 0)]
    sent = [user(document(1)), cites(0, 1), user(document(2)), cites(2, 0)]
    assert numbers_in(with_citations(came, sent)) == [[0], [1]]
    assert numbers_in(came) == [[0, 1], [2, 0]], "the client's messages are unchanged"


def test_search_results_have_numbers_of_their_own():
    in_result = {"type": "tool_result", "tool_use_id": "c", "content": [result(0), result(1)]}
    came = [user(document(0), in_result), cites(1, name="search_result_index"), cites(0)]
    sent = [user({**in_result, "content": [result(1)]}), came[1], came[2]]
    left = with_citations(came, sent)
    assert numbers_in(left, "search_result_index") == [[0]]
    assert "citations" not in left[2]["content"][0]


@pytest.mark.parametrize("budget", [2_000, 4_000, 6_000])
def test_compaction_leaves_no_citation_of_another_document(budget):
    talk = []
    for n in range(6):
        talk += [user(document(n), {"type": "text", "text": f"Read d{n}."}), cites(*range(n + 1))]
    talk += [
        user({"type": "text", "text": LONG}),
        {"role": "assistant", "content": "Yes."},
        user({"type": "text", "text": "And?"}),
    ]
    sent = ctx_hooks.compress(talk, format="anthropic", budget_tokens=budget).messages
    documents = [b for m in sent if isinstance(m["content"], list) for b in m["content"] if b["type"] == "document"]
    named = {b["title"] for b in documents}
    assert named < {f"d{n}" for n in range(6)}
    for message in sent:
        for block in message["content"] if isinstance(message["content"], list) else ():
            for citation in block.get("citations") or ():
                was = json.loads("[" + block["text"].partition("(")[2].partition(")")[0].rstrip(",") + "]")
                assert int(documents[citation["document_index"]]["title"][1:]) in was
