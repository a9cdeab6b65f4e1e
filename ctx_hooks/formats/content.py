"""Content as text, as blocks, or as a value of any shape: its long texts are parts that steps may shorten."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ctx_hooks.conversation.model import ELIDED, Media, Opaque, Part, Path, Text
from ctx_hooks.formats import fields
from ctx_hooks.formats.fields import MAPPINGS, media_of, opaque_of, text_or_empty

LEAST_TEXT_CHARS = 200
"""A shorter string in an unknown value may be an id, a state, a name or a date, and is hardly longer than a placeholder."""
SEALED = fields.SEALED_FIELDS | fields.SIGNATURE_FIELDS | {"fingerprint"}
"""A provider may check a mapping with one of these fields as a whole."""


def text_parts(content: Any, text_types: frozenset[str]) -> tuple[Text | Media | Opaque, ...]:
    """Read content that is a string, blocks, or any other value."""
    if isinstance(content, (list, tuple)):
        return tuple([part for block in content for part in block_parts(block, text_types)])
    if isinstance(content, str):
        return (Text(content),)
    return () if content is None else parts_of_value(content)


def block_parts(block: Any, text_types: frozenset[str]) -> tuple[Text | Media | Opaque, ...]:
    """Read a block of content."""
    if isinstance(block, str):
        return (Text(block, raw=block),)
    if not isinstance(block, MAPPINGS):
        return (opaque_of(block),)
    if text_or_empty(block.get("type")) in text_types and isinstance(block.get("text"), str):
        return (Text(block["text"], raw=block),)
    media = media_of(block)
    return (media,) if media else parts_of_value(block)


def parts_of_value(value: Any) -> tuple[Text | Opaque, ...]:
    """Read a value that no format module knows: its long texts, each with its path as `raw`, then the rest."""
    texts = dict(_long_texts(value, ()))
    rest = opaque_of(_with_texts(value, dict.fromkeys(texts, "")) if texts else value)
    return (*(Text(text, raw=path) for path, text in texts.items()), replace(rest, raw=value, texts=tuple(texts)))


def _long_texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the texts that steps may shorten, with their paths: no words (ids, URLs), no media, nothing sealed or signed."""
    if isinstance(value, str):
        is_text = len(value) >= LEAST_TEXT_CHARS and (len(value.split(None, 1)) > 1 or not value.isascii())
        if is_text and not fields.is_payload(value):
            yield path, value
    elif isinstance(value, Mapping):
        if not any(map(value.get, SEALED)) and (fields.REFERENCES.isdisjoint(value) or media_of(value) is None):
            for name, inner in value.items():
                yield from _long_texts(inner, (*path, name))
    elif isinstance(value, (list, tuple)):
        for n, inner in enumerate(value):
            yield from _long_texts(inner, (*path, n))


def _with_texts(value: Any, texts: Mapping[Path, str], path: Path = ()) -> Any:
    if isinstance(value, (list, tuple)):
        return [_with_texts(inner, texts, (*path, n)) for n, inner in enumerate(value)]
    if isinstance(value, Mapping):
        return {name: _with_texts(inner, texts, (*path, name)) for name, inner in value.items()}
    return texts.get(path, value)


def write_parts(parts: Iterable[Part], write: Callable[[Part], Any]) -> list[Any]:
    """Write one value a part. A text of an unknown value is written in its place there, or a mark if a step removed it."""
    listed = list(parts)
    texts = {id(part.raw): part.text for part in listed if isinstance(part, Text) and isinstance(part.raw, tuple)}
    written = []
    for part in listed:
        if isinstance(part, Opaque) and part.texts:
            written.append(_with_texts(part.raw, {path: texts.get(id(path), ELIDED) for path in part.texts}))
        elif id(part.raw) not in texts:
            written.append(write(part))
    return written


def write_content(parts: Sequence[Part], original: Any, text_type: str) -> Any:
    """Write content as a string, as blocks or as a value, like `original`."""
    if not isinstance(original, (list, tuple)) and all(isinstance(p, Text) for p in parts):
        return "\n".join(p.text for p in parts if isinstance(p, Text))
    blocks = write_parts(parts, lambda part: write_block(part, text_type))
    return blocks[0] if len(blocks) == 1 and any(isinstance(p, Opaque) and p.raw is original for p in parts) else blocks


def write_block(part: Part, text_type: str) -> Any:
    """Write one block with all its original fields."""
    if not isinstance(part, Text):
        return part.raw
    if not isinstance(part.raw, MAPPINGS):
        return {"type": text_type, "text": part.text}
    return part.raw if part.raw.get("text") == part.text else {**part.raw, "text": part.text}
