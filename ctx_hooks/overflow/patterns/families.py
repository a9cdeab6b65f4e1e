"""Families of wordings, for unknown providers and versions: the measured thing, the excess and the limit, in any order.

"Limit exceeded" without more is no overflow: the sentence has to name the context, or the prompt and its length.
"""

import re
from typing import NamedTuple

from ctx_hooks.overflow.patterns.wordings import NUMBER, Kind

SETTING = (
    r"\b(?:max(?:imum)?[_-]?(?:(?:num|total|input|prompt|prefill|batch(?:ed)?|context|ctx|seq(?:uence)?|model|position|req(?:uest)?|"
    r"query|text|encoder|decoder|source|session|chat|message|history|single)[_-]?){1,4}"
    r"(?:tokens|len(?:gth)?|embeddings|ctx|context|window|window_size|token_limit)|"
    r"(?:n|num)_ctx(?:_\w{1,12})?|max_?(?:ctx|context)|n_positions|"
    r"(?:model_max|context|ctx|seq|sequence|session|truncation)_(?:len(?:gth)?|size|window(?:_size)?))\b"
)
"""A server's setting that limits the model's input, in any usual spelling; settings for output and batch do not count."""
CONTEXT = (
    r"\b(?:context[ -]?(?:windows?|lengths?|size|limit|len)|(?:maximum|max|kv|model) context|sequence length|"
    r"(?:maximum|max) (?:sequence|seq|prompt|input|model|context)(?: tokens?)? (?:length|len|size|tokens?|limit)|model max(?:imum)? len(?:gth)?|"
    r"(?:prompt|input)(?: token)? limit|(?:model|input|prompt) length limit|"
    rf"model(?:'s)? (?:token|context|input) limit|context of {NUMBER}|"
    r"fit(?:s|ting)? (?:in|into|inside|within) (?:(?:the|its|this|your|model's) ){0,2}context)\b"
)
"""A model's capacity for input, in words."""
_TOO_MUCH = (
    r"(?:exceed\w{0,3}|overflow\w{0,3}|surpass\w{0,3}|(?:long|larg|great|bigg|high)er than|more (?:tokens )?than|beyond|above|over|"
    r"outside|too (?:long|large|big|many)|not fit|n[o']?t fit|is full|reached)\b"
)
_TOO_LITTLE = r"\b(?:too (?:small|short)|not enough|insufficient)\b"
_COMPARED = (
    rf"\b{_TOO_MUCH}|{_TOO_LITTLE}|[<>≤≥]|\b(?:(?:small|short|low|few)er|less) than\b|"
    r"\b(?:(?:must|should|has to|have to|can|may)(?: ?not)? be|only|at most|up to|no more)\b"
)
_PROMPT = r"(?:prompts?|inputs?|input[_ ]ids|messages|(?:your|the|this|that|last|latest|user|total|submitted|sent) (?:message|text)|(?:total|prompt|input) token count|prefill(?: tokens)?|conversation|history|sequence|request)"
_PROMPT_TOKENS = rf"\b(?:(?:num_|n_|len_)?(?:prompt|input|query|token)[_-]?(?:tokens?|token_ids|ids|len(?:gth)?s?|size|count)|{_PROMPT}|tokens)\b"
_OUTPUT = (
    r"\b(?:max_(?:new_|completion_|output_)?tokens|requested output|(?:completion|output|generation) (?:tokens|length))\b"
)
_NO_OUTPUT = rf"^(?!.*{_OUTPUT})"
_OUTPUT_ONLY = (
    r"^(?!.*(?:prompt|input|context|messages|max_seq|max_total|\+|at least|minimum|below|≥|>=|"
    r"be (?:greater|larger|more|higher|above)))"
    r".*\b(?:max_?(?:completion_?|output_?|new_?)?tokens(?![a-z])|maximum tokens you requested)"
)
"""A sentence that names an output setting, no input, and no least value: the limit is no window."""
_LENGTH = r"(?: (?:tokens?|token|token count|length|len|size|text|sequence|prompt|messages)){0,2}"
_COUNT = rf"(?: ?\(?(?:of |: )?{NUMBER}(?: tokens?)?\)?)?"
_GIVEN = (
    r"(?:,?(?: (?:that|which|as|you(?:'[vd]e?)?|was|were|has|have|had|been|just)){0,4} "
    r"(?:submitted|sent|provided|entered|given|gave|supplied|posted|passed|pasted)\b,?)?"
)
_NOT = r"(?:(?:can|may|must|should|would|could)(?: ?not)? )?"
_LIMIT = (
    rf"\bmax(?:imum)?\b(?! (?:allowed )?number of (?!(?:input |prompt |context )?tokens))|\blimit\b|\ballowed\b|\bcapacity\b|\bsupports?\b|"
    rf"\b{NUMBER}[ -]tokens?\b"
)
_SHORTEN = (
    r"\b(?:reduce (?:the |your )?(?:(?:total )?(?:length|size|number of tokens) )?(?:of |in )?(?:the |your )?"
    r"(?:messages|prompt|input|conversation|context)|(?:shorten|truncate|trim) (?:the |your )?(?:prompt|input|messages|conversation))\b"
)
_CHINESE_TOO_MUCH = r"上下文(?:长度|窗口)?不足|超过|超出|超限|超长|过长|过大|太长|太大|大于|超過|過長|太長"


class Family(NamedTuple):
    """A sentence belongs to it if it matches each of `needs`; `counted`: if the named input is above the named limit too."""

    name: str
    kind: Kind
    needs: tuple[re.Pattern[str], ...]
    counted: bool = False

    def has(self, sentence: str) -> bool:
        """Whether a sentence, on one line and in lower case, belongs to the family."""
        return all(need.search(sentence) for need in self.needs)


def _family(name: str, *needs: str, kind: Kind = "input", counted: bool = False) -> Family:
    return Family(name, kind, tuple(map(re.compile, needs)), counted)


FAMILIES: tuple[Family, ...] = (
    _family(
        "family_with_output",
        r"(?:\+|\band\b|\bplus\b|,)",
        _OUTPUT,
        _PROMPT_TOKENS,
        rf"{CONTEXT}|{SETTING}",
        _COMPARED,
        kind="input_plus_output",
    ),
    _family(
        "family_sum",
        r"\bsum of\b|\+|\bplus\b|\b(?:total|combined|together|both)\b.{0,200}\band\b|\band\b.{0,200}\b(?:total|combined|together)\b",
        _OUTPUT,
        _PROMPT_TOKENS,
        _COMPARED,
        kind="input_plus_output",
    ),
    _family("family_setting", SETTING, _COMPARED, _PROMPT_TOKENS),
    _family("family_context", CONTEXT, rf"\b{_TOO_MUCH}|{_TOO_LITTLE}|{NUMBER} ?> ?{NUMBER}|\bonly\b|\brequested {NUMBER}"),
    _family(
        "family_no_context_left",
        r"\b(?:out of context (?:space|window|length|tokens)|too much context|context (?:window )?(?:is )?(?:full|exhausted|overflow))\b|"
        r"\bcontext[_-]?(?:(?:length|window|size|limit)[_-]?)?(?:exceeded|overflow)",
    ),
    _family(
        "family_too_long",
        rf"\b(?:{_PROMPT}|context|token count|(?:chat|message) history){_LENGTH}{_GIVEN}{_COUNT} ?"
        r"(?:(?:is|are|was|were|has become|have become) )?(?:simply |just )?(?:far |much |way )?"
        r"(?:too|excessively) (?:long|large|big|lengthy)\b(?! a\b)|\btoo many (?:input |prompt |total |context )?tokens\b",
    ),
    _family(
        "family_prompt_exceeds",
        rf"\b{_PROMPT}(?:'s)?{_LENGTH}{_COUNT},? (?:is |are |was |were )?{_NOT}{_TOO_MUCH}",
        _LIMIT,
        _NO_OUTPUT,
    ),
    _family("family_tokens_exceed", rf"\b{_PROMPT}\b", r"\btokens?\b", rf"\b{_TOO_MUCH}|[<>≤≥]", _LIMIT, _NO_OUTPUT),
    _family(
        "family_counted",
        rf"\b{_PROMPT}\b",
        rf"{_LIMIT}|{_COMPARED}|\baccepts\b|\bcan (?:handle|process)\b",
        _NO_OUTPUT,
        counted=True,
    ),
    _family("family_shorten", _SHORTEN),
    _family(
        "family_chinese", _CHINESE_TOO_MUCH, r"上下文|输入|輸入|提示词|提示詞|消息|对话|對話|文本|会话|token|令牌|prompt"
    ),
    _family(
        "family_output_limit",
        _OUTPUT_ONLY,
        rf"\b{_TOO_MUCH}|[<>≤]|\b(?:less than|at most|no more than|maximum|range|between)\b|\bin [\[(]\d|范围",
        kind="output_limit",
    ),
)
"""In the order in which they are tried."""
