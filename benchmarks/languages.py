"""The error of local tokens in twenty languages, for models whose vocabulary does not come with LiteLLM.

    uv run --group bench python benchmarks/languages.py [tokenizer.json...]

`languages.json` holds a short paragraph in each language, the same story, and its tokens in six vocabularies in use today,
measured with each model's published tokenizer files. Prints local tokens as a share of each of them and of their median,
and the same for cl100k_base. Further tokenizer files are measured at once.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from tokenizers import Tokenizer

from ctx_hooks.tokens.counter import Counter, vocabulary_of

MEASURED = Path(__file__).with_suffix(".json")
COLUMN_CHARS = 11


def row(label: str, shares: list[float]) -> str:
    """Return one line of the table."""
    return f"{label:14}" + "".join(f"{share:>{COLUMN_CHARS}.2f}" for share in shares)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizers", nargs="*", type=Path)
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    for path in parser.parse_args().tokenizers:
        tokenizer = Tokenizer.from_file(str(path))
        for language in measured.values():
            language["tokens"][path.parent.name] = len(tokenizer.encode(language["text"], add_special_tokens=False).ids)
    names = [*next(iter(measured.values()))["tokens"], "median", "cl100k"]
    print(" " * 14 + "".join(f"{name[: COLUMN_CHARS - 1]:>{COLUMN_CHARS}}" for name in names))
    ours, older = Counter(vocabulary_of("some/model")), Counter("cl100k_base")
    for name, language in measured.items():
        counted, provider_tokens = ours.text(language["text"]), list(language["tokens"].values())
        shares = [counted / tokens for tokens in provider_tokens]
        print(
            row(
                name, [*shares, statistics.median(shares), older.text(language["text"]) / statistics.median(provider_tokens)]
            )
        )


if __name__ == "__main__":
    main()
