"""What the arguments of calls name, as far as they can be read at once."""

import json

from ctx_hooks.compaction import tool_texts
from ctx_hooks.texts.json_text import LARGEST_CHARS, MOST_CONTAINERS, parsed


def test_json_too_large_or_too_deep_is_not_parsed():
    many = json.dumps({"content": "x" * 5_000, "rows": [[]] * MOST_CONTAINERS})
    for text in ('{"content": "' + "x" * 5_000, "{" * 5_000, many, json.dumps(["x" * LARGEST_CHARS])):
        assert parsed(text) is None


def test_digest_is_path_or_arguments():
    for key in ("file_path", "filePath", "path"):
        assert tool_texts.digest(f'{{"mode": 1, "{key}": "src/a.py"}}') == "src/a.py"
    assert tool_texts.digest('{"n": 1,  "m": "é"}') == '{"n":1,"m":"é"}'
    assert tool_texts.digest("no json") == "no json"
