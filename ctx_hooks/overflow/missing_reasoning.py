"""Whether a refusal says that messages lack the reasoning that the provider gave with them."""

import re
from typing import Any

from ctx_hooks.overflow.texts import own_words, plain

_NAME = r"(?:reasoning[_ ](?:content|details)|content\[\]\.thinking|thinking (?:content|blocks?))"
_MISSING = re.compile(
    # "The `reasoning_content` in the thinking mode must be passed back to the API." (DeepSeek V4, MiMo), "The
    # `content[].thinking` ..." (DeepSeek's /anthropic, anomalyco/opencode#24791), "thinking is enabled but reasoning_content is
    # missing in assistant tool call message at index 19" (Moonshot, continuedev/continue#11711).
    rf"{_NAME}[^.]{{0,60}}?(?:must be (?:pass|sen[dt]|given|return|provid|includ|present|non-empty|kept)|"
    r"(?:is|are|was) (?:missing|required|empty)|(?:cannot|can't|may not|must not) be (?:missing|empty|omitted|null))|"
    # "Missing `reasoning_content` field in the assistant message at message index 2." (DeepSeek V3.2, continuedev/
    # continue#10193), "assistant message with tool_calls must include reasoning_content" (esengine/DeepSeek-Reasonix#6173).
    rf"(?:missing|lacks?|without|must (?:include|have|contain|carry|provide)|requires?) [^.]{{0,30}}?{_NAME}|"
    rf"缺少[^。]{{0,20}}?{_NAME}|{_NAME}[^。]{{0,20}}?(?:必须|缺失)"
)
_UNWANTED = re.compile(r"remove|unsupported|not (?:be )?(?:supported|allowed|permitted|passed|sent|included)")


def misses_reasoning(error: Any) -> bool:
    """Return whether a refusal's own words say so."""
    texts = [plain(text).translate({ord("`"): None}) for text in own_words(error).texts]
    return any(_MISSING.search(text) and not _UNWANTED.search(text) for text in texts)
