"""The pages of the documentation, and the blocks of code on them."""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCED = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)

COMMENT = re.compile(r"(^|\s+)#\s.*")
SHELL = ("sh", "bash", "console")


@dataclass(frozen=True)
class Block:
    """A fenced block: the page, from the project's folder, the line of its fence, its language and its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The commands of a shell's block, without comments; of a console those behind a `$`, and not what they print."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line for line in (COMMENT.sub("", line).strip() for line in lines) if line]


def pages() -> list[Path]:
    """Return the README and every page of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(*languages: str) -> list[Block]:
    """Return every block, or those in one of the languages."""
    return [b for page in pages() for b in _blocks(page) if not languages or b.language in languages]


def recipes() -> dict[str, str]:
    """Return the configuration of each recipe, by its title."""
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    return {part.splitlines()[0]: next(FENCED.finditer(part))["text"] for part in text.split("\n## ")[1:]}


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in FENCED.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(str(page.relative_to(ROOT)), line, found["language"], textwrap.dedent(found["text"]))
