"""Whether an error says that the request was too long for the model, and which figures it gives."""

import re
from dataclasses import dataclass
from typing import Any

from ctx_hooks.overflow.figures import LEAST_WINDOW_TOKENS, figures_of, inclusive, limit_bytes_of, output_figures_of
from ctx_hooks.overflow.patterns.families import FAMILIES
from ctx_hooks.overflow.patterns.other_errors import NOT_OVERFLOW, OTHER_CODE, OTHER_STATUSES, RATE_TOO_LARGE, TOO_MANY_BYTES
from ctx_hooks.overflow.patterns.wordings import CODES, PATTERNS, Kind, Pattern, number
from ctx_hooks.overflow.texts import SENTENCE_END, OwnWords, beginning_of, own_words, plain
from ctx_hooks.tokens.units import ProviderTokens

CONTENT_TOO_LARGE = 413
MOST_SENTENCES = 20
"""At most this many sentences of one text are compared with the families of wordings."""
_REASONING = r"(?:reasoning[_ ](?:content|details)|content\[\]\.thinking|thinking (?:content|blocks?))"
_MISSING = re.compile(
    # "The `reasoning_content` in the thinking mode must be passed back to the API." (DeepSeek V4), "thinking is enabled but
    # reasoning_content is missing in assistant tool call message" (Moonshot, continuedev/continue#11711).
    rf"{_REASONING}[^.。]{{0,60}}?(?:must be (?:pass|sen[dt]|given|return|provid|includ|present)|必须|缺失|"
    r"(?:is|are|was|be) (?:missing|required|empty))|"
    # "assistant message with tool_calls must include reasoning_content" (esengine/DeepSeek-Reasonix#6173)
    rf"(?:missing|without|must (?:include|have|contain|provide)|requires?|缺少) ?[^.。]{{0,30}}?{_REASONING}"
)


@dataclass(frozen=True, slots=True)
class Overflow:
    """What an overflow error says; figures are None if the text has none.

    Attributes:
        kind: "input" if the input itself is too long, "input_plus_output" if input and requested output together are,
            "output_limit" if only the requested output is above the model's own cap, "bytes" if the request has too many.
        pattern: the recognised wording; "rate_too_large" if a single request exceeds a rate limit, which is no window.
        limit_tokens: the limit on what `kind` names; for "bytes" it is `limit_bytes`.
        at_least: whether `input_tokens` is a lower bound and says nothing of the tokenizer.
        sentence: the start of the provider's message, one line of at most 300 characters.
        quoted: whether its figures also stand in the request. They are used for the retry, and teach only if it is answered.
    """

    kind: Kind
    pattern: str
    limit_tokens: ProviderTokens | None = None
    input_tokens: ProviderTokens | None = None
    requested_output_tokens: ProviderTokens | None = None
    at_least: bool = False
    sentence: str = ""
    quoted: bool = False
    limit_bytes: int | None = None

    @property
    def figures(self) -> tuple[ProviderTokens | None, ...]:
        """The limit, the input and the output that the error names."""
        return self.limit_tokens, self.input_tokens, self.requested_output_tokens


def recognise_overflow(
    error: Any, *, status: int | None = None, body: Any = None, provider: str | None = None
) -> Overflow | None:
    """Return the overflow that an error reports; None if it is about something else.

    Only a bounded part of the error's own message and code is read, not an echoed prompt or tool result.

    Args:
        error: an exception, a text, or a body (mapping or JSON text).
        status: the HTTP status; by default the exception's own.
        body: the body of the answer, if the exception does not carry it.
        provider: LiteLLM's name of the provider; decides texts that mean an overflow at one provider only.

    >>> recognise_overflow("prompt is too long: 205000 tokens > 200000 maximum").limit_tokens
    200000
    """
    status = getattr(error, "status_code", None) if status is None else status
    return overflow_in(own_words(error, body), status=status, provider=provider)


def overflow_in(words: OwnWords, *, status: int | None, provider: Any) -> Overflow | None:
    """Return the overflow that an error's words report, as `recognise_overflow` does."""
    texts = {text: plain(text) for text in words.texts}
    code = next((c for c in words.codes if c in CODES), None)
    found = next(filter(None, (_by_pattern(text, provider, original) for original, text in texts.items())), None)
    if found is None and (code or status not in OTHER_STATUSES):
        found = next(filter(None, (_by_family(text, original) for original, text in texts.items())), None)
        if found is None and code:
            return Overflow("input", f"code:{code}", sentence=beginning_of(next(iter(texts), "")))
        topics = (*texts.values(), *(plain(code.replace("_", " ")) for code in words.codes))
        if found and not code and any(NOT_OVERFLOW.search(each) or TOO_MANY_BYTES.regex.search(each) for each in topics):
            return None
    return None if found is None or (names_another(words) and found.kind != "output_limit") else found


def names_another(words: OwnWords) -> bool:
    """Return whether an error's code names another fault than an overflow."""
    return any(map(OTHER_CODE.search, words.codes)) and CODES.isdisjoint(words.codes)


def too_large_for_rate(words: OwnWords) -> Overflow | None:
    """Return the overflow if a single request is larger than the rate limit itself; None for other rate limits."""
    for original in words.texts:
        found = RATE_TOO_LARGE.regex.search(plain(original))
        limit, asked = map(number, found.group("limit", "input")) if found else (None, None)
        if limit and asked and asked > limit >= LEAST_WINDOW_TOKENS:
            return Overflow("input", RATE_TOO_LARGE.name, limit, sentence=beginning_of(original))
    return None


def too_many_bytes(words: OwnWords, *, status: int | None = None) -> Overflow | None:
    """Return the overflow if the whole request has too many bytes for a server before the model; None for other errors.

    LiteLLM leaves only the status of an error in HTML; a text about tokens or a rate is about these, whatever the status.
    """
    said = plain(" ".join((*words.texts, *words.codes)))
    if not TOO_MANY_BYTES.regex.search(f"{said} 413 payload too large" if status == CONTENT_TOO_LARGE else said):
        return None
    sentence = beginning_of(next(iter(words.texts), ""))
    return Overflow("bytes", TOO_MANY_BYTES.name, sentence=sentence, limit_bytes=limit_bytes_of(said))


def misses_reasoning(error: Any) -> bool:
    """Return whether a refusal says that messages lack the reasoning that the provider gave with them."""
    return any(_MISSING.search(plain(text).replace("`", "")) for text in own_words(error).texts)


def _by_pattern(text: str, provider: Any, original: str) -> Overflow | None:
    for pattern in PATTERNS:
        if not pattern.only or str(provider).lower().startswith(pattern.only):
            found = pattern.regex.search(text)
            overflow = _read(pattern, found, original) if found else None
            if overflow is not None:
                return overflow
    return None


def _read(pattern: Pattern, found: re.Match[str], original: str) -> Overflow | None:
    names = ("limit", "input", "output", "total", "more")
    limit, given, output, total, more = map(number, map(found.groupdict().get, names))
    if pattern.kind == "output_limit" and limit is not None:
        limit = inclusive(limit, found, "limit")
    if more is not None and given is not None:
        given = ProviderTokens(given + more)
    if given is None and total is not None and output is not None:
        given = ProviderTokens(total - output)
    if total is not None and limit is not None and total <= limit:
        return None  # a request below the limit was refused for another reason, such as the use by other requests
    kind = pattern.kind
    if kind == "input_plus_output":
        is_above = limit and given and (given > limit or (pattern.at_least and given >= limit))
        if is_above or (given is not None and total is None and not output):
            kind = "input"
    return Overflow(kind, pattern.name, limit, given, output, pattern.at_least, beginning_of(original))


def _by_family(text: str, original: str) -> Overflow | None:
    limit, given, output = figures_of(text)
    above = limit is not None and given is not None and given > limit
    sentences = SENTENCE_END.split(text, MOST_SENTENCES)[:MOST_SENTENCES]
    families = [f for f in FAMILIES if (above or not f.counted) and any(map(f.has, sentences))]
    if not families:
        return None
    family = next((f for f in families if f.kind != "output_limit"), families[0])
    kind: Kind = "input" if above else "input_plus_output" if output else family.kind
    if family.kind == "output_limit":
        kind, (limit, given, output) = family.kind, output_figures_of(text)
        if limit is None:
            return None
    return Overflow(kind, family.name, limit, given, output, sentence=beginning_of(original))
