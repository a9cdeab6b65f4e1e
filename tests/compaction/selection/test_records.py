"""A structured text is cut between records: each kept one is whole, with its keys, and the others are counted."""

import json
import re

import pytest
from strategies import called

import ctx_hooks
from ctx_hooks.compaction.selection.records import record_spans, saved_line
from ctx_hooks.compaction.selection.segments import segments

ROWS = [{"id": f"INV-{n:03}", "date": f"2026-01-{n % 28 + 1:02}", "owner": f"owner_{n}", "sum": n * 17} for n in range(60)]


def nested(rows):
    inner = json.dumps({"rows": rows}, indent=1)
    return json.dumps({"content": [{"type": "text", "text": inner, "annotations": None}], "isError": False})


def printed(rows):
    inner = json.dumps({"content": [{"type": "text", "text": json.dumps(rows), "note": 'a "b" [c'}]}, indent=2)
    return f"meta=None content=[TextContent(type='text', text='{inner}', annotations=None)] isError=False"


FORMS = {
    "JSON": lambda rows: json.dumps(rows, indent=2),
    "JSON on one line": json.dumps,
    "JSON by key": lambda rows: json.dumps({row["id"]: row for row in rows}, indent=1),
    "JSON in a string": nested,
    "JSON in a printed string": printed,
    "JSON lines": lambda rows: "\n".join(map(json.dumps, rows)),
    "CSV": lambda rows: "id,date,owner,sum\n" + "".join(",".join(map(str, row.values())) + "\n" for row in rows),
    "table": lambda rows: "| id | date | owner | sum |\n|---|---|---|---|\n"
    + "".join("| " + " | ".join(map(str, row.values())) + " |\n" for row in rows),
    "YAML": lambda rows: "items:\n" + "".join(
        f"- id: {r['id']}\n  date: {r['date']}\n  owner: {r['owner']}\n  sum: {r['sum']}\n" for r in rows
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_structured_text_is_cut_between_records(form):
    text = form(ROWS)
    found = segments(text)
    spans = [text[a:b] for a, b in found.spans]
    assert "".join(spans) == text
    assert len(found.records) == len(ROWS)
    for row, n in zip(ROWS, found.records, strict=True):
        assert [r["id"] for r in ROWS if str(r["owner"]) + " " in re.sub(r"\W", " ", spans[n]) + " "] == [row["id"]]
        assert all(str(value) in spans[n] for value in row.values())


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_kept_records_have_head_and_count(form):
    rows = [{**row, "owner": f"owner_{n}" + f" nothing of note {n}" * 8} for n, row in enumerate(ROWS)]
    texts = [form(rows[n:] + rows[:n]) for n in range(4)]
    shown = [m for n, text in enumerate(texts) for m in called(text, f"c{n}", arguments={"part": n})]
    said = {"role": "assistant", "content": "I look at owner_31 and owner_32."}
    messages = [{"role": "user", "content": "Sum up."}, *shown, said, {"role": "user", "content": "Go on."}]
    sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=3_000).messages
    cut = [m["content"] for m in sent if "records in this output were removed" in str(m.get("content"))]
    assert cut
    for text in cut:
        left, total = map(int, re.search(r"(\d+) of the (\d+) records", text).groups())
        kept = [row for row in rows if row["owner"].split()[0] in re.findall(r"owner_\d+", text)]
        assert (total, left) == (60, 60 - len(kept))
        assert all(row["id"] in text and row["date"] in text and row["owner"] in text for row in kept)
        assert text.split("\n", 1)[1].startswith(texts[0][: record_spans(texts[0])[0][0]].rstrip("\n"))


@pytest.mark.parametrize(
    "text", ["def f():\n    return {1, 2}\n" * 40, "One, two, three.\nFour, and five.\n" * 40, "{" * 999]
)
def test_other_texts_have_no_records(text):
    assert record_spans(text) == []


@pytest.mark.parametrize("line", [
    "// Will be set from metadata if available, see the whole of entire/cli/session.go",
    "entire/checkpoint/committed.go-23-// Checkpoints are stored at sharded paths: <id>/<rest>/",
    "2026/01/06 INFO checkpoint saved branch=entire/96a3a0e",
    "All metadata is stored on the `entire/sessions` branch, the original/main one.",
])  # fmt: skip
def test_line_without_an_outputs_place_is_no_saved_line(line):
    assert saved_line(f"quiet line\n{line}\nquiet line") is None


def test_place_of_saved_output_stays():
    saved = "Output too large (90 KB). Full output saved to: /tmp/results/out_7.txt"
    for text in (f"{saved}\n" + "quiet line of nothing\n" * 400, "quiet line of nothing\n" * 400 + saved):
        shown = [m for n in range(6) for m in called(text + str(n), f"c{n}", arguments={"part": n})]
        messages = [{"role": "user", "content": "Sum up."}, *shown, {"role": "user", "content": "Go on."}]
        sent = ctx_hooks.compress(messages, format="openai-chat", budget_tokens=3_000).messages
        results = [m["content"] for m in sent if m["role"] == "tool"]
        assert results
        assert all("saved to: /tmp/results/out_7.txt" in content for content in results)
