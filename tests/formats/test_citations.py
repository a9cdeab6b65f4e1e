"""A compacted request has no citation that names a block by its number: the number may be another block's."""

import pytest

import ctx_hooks
from ctx_hooks.formats import ANTHROPIC, WIRE_FORMATS

LONG = "\n".join(f"row {n}: value {n * 7919 % 1000}" for n in range(600))
BY_URL = {"type": "web_search_result_location", "cited_text": "x", "url": "https://e.org", "encrypted_index": "EpAB"}


def cites(*citations):
    return {"role": "assistant", "content": [{"type": "text", "text": "As said.", "citations": [*citations]}]}


def numbered(name="document_index"):
    return {"type": "char_location", "cited_text": "x", name: 0, "start_char_index": 0}


@pytest.mark.parametrize("name", ["document_index", "search_result_index"])
def test_numbered_citations_go_and_others_stay(name):
    wire = WIRE_FORMATS[ANTHROPIC]
    came = [cites(numbered(name), BY_URL), cites(numbered(name)), {"role": "user", "content": "And?"}]
    assert wire.sent(wire.read(came), came) == came
    left = wire.sent(wire.read(came), came[1:])
    assert left == [cites(BY_URL), {"role": "assistant", "content": [{"type": "text", "text": "As said."}]}, came[2]]
    assert came[1] == cites(numbered(name)), "the client's messages are unchanged"


def test_compaction_leaves_no_numbered_citation():
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "word " * 900}}
    talk = [{"role": "user", "content": [document, {"type": "text", "text": LONG}]}, cites(numbered())] * 3
    asked = {"role": "user", "content": "And?"}
    sent = ctx_hooks.compress([*talk, asked], format="anthropic", budget_tokens=4_000)
    assert sent.changed
    assert not any(name in str(sent.messages) for name in ("citations", "document_index"))
