"""Links of the documentation to files outside of `docs/`: the site has a copy of each file under `source/`.

On GitHub such a link leads to the file itself; a site has only what is in its own folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files, InclusionLevel

ROOT = Path(__file__).resolve().parents[1]


def _outside(page: str) -> re.Pattern[str]:
    """Return what finds a page's links out of `docs/`, by its path there: one step up more than it has folders."""
    return re.compile(rf"\]\((?:\.\./){{{page.count('/') + 1}}}([\w./-]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add each file that a page links to outside of its folder."""
    pages = {
        page.src_uri: Path(config.docs_dir, page.src_uri).read_text(encoding="utf-8") for page in files.documentation_pages()
    }
    for path in sorted({found for uri, text in pages.items() for found in _outside(uri).findall(text)}):
        copy = File.generated(config, f"source/{path}", abs_src_path=str(ROOT / path), inclusion=InclusionLevel.NOT_IN_NAV)
        files.append(copy)
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point such links at the copies."""
    uri = page.file.src_uri
    up = "../" * uri.count("/")
    return markdown if uri.startswith("source/") else _outside(uri).sub(rf"]({up}source/\1)", markdown)
