"""The names of LiteLLM that are patched at start, and what is lost where a version lacks one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Seam:
    """A name of LiteLLM, as `Router.make_call`, and what does not work without it."""

    name: str
    without: str

    @property
    def missing(self) -> str:
        """The warning where it is not there."""
        return f"this LiteLLM has no {self.name}: {self.without}"

    @property
    def is_there(self) -> bool:
        """Whether this LiteLLM has it."""
        import litellm  # noqa: PLC0415

        found = litellm
        for part in self.name.split("."):
            found = getattr(found, part, None)
        return found is not None


MAKE_CALL = Seam("Router.make_call", "overflows that LiteLLM does not recognise are not retried")
IN_STREAM = Seam("Router.async_function_with_fallbacks_common_utils", "an overflow that a stream reports is not retried")
USAGE = Seam("stream_chunk_builder", "a stream that states no usage is logged with the size that the caller sent")
CHUNKS = Seam("CustomStreamWrapper.chunk_creator", "an error that is a chunk of a chat stream ends it empty")
SEAMS = (MAKE_CALL, IN_STREAM, USAGE, CHUNKS)
