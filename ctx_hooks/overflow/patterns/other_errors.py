"""Errors that are no overflow, however much they look like one.

Mistaking another error for an overflow cuts a conversation for nothing and teaches a wrong limit; a missed overflow is only
forwarded. A wording whose figures have a known meaning still takes precedence.
"""

import re

from ctx_hooks.overflow.patterns.wordings import Pattern

OTHER_STATUSES = frozenset({401, 402, 403, 404, 405, 408, 409, 429})
"""Access, payment, absence, time and rate: no provider answers an overflow with these in words of its own making."""

OTHER_CODE = re.compile(
    r"^(?!.*_error$)(?:.*(?:unsupported|unknown|unrecognized|missing|not_?found|api_?key|rate_?limit|quota|billing|content_?(?:filter|"
    r"policy)|moderation|permission|forbidden)|invalid_(?!request|param|arg|input|prompt)|(?:array|integer|decimal|number)_(?:above|below))",
    re.IGNORECASE,
)
"""Codes of other faults: only a limit of the output has one of these too, "max_tokens is too large" with `invalid_value`. Types
such as `authentication_error` and `rate_limit_error` are classes, and come with overflows too."""

TOO_MANY_BYTES = Pattern(
    "too_many_bytes",
    r"^(?!.*(?:\btokens?\b|\bcontext\b|rate[ _]limit))(?:.*(?:"
    r"(?:\b|_)(?:request|payload|body|content)[ _](?:(?:body|entity|payload)[ _])?(?:is |was |size is )?too[ _](?:large|long|big)\b|"
    r"\b(?:request|payload|body|total message)(?: (?:body|payload|entity))? size\b.{0,40}?(?:exceed|limit|maximum|max\b|larger|\d over)|"
    r"\brequest (?:body |payload )?(?:exceeds|must be smaller than|is larger than) .{0,30}?(?:size|bytes|[km]i?b)\b|"
    r"message larger than max|"
    r"value at 'body' failed to satisfy constraint: member must have length|request body: length limit exceeded))",
    kind="bytes",
)
"""A limit in bytes of a gateway, a web server or a provider, on the whole request: it says nothing of tokens."""

NOT_OVERFLOW = re.compile(
    # Rates.
    r"rate[ _-]?limit|token[ _]rate|count rate|per[ _-](?:min(?:ute)?|day|hour|second|week|month)|"
    r"/ ?(?:s|sec|min|minute|h|hour|day|month)\b|\b(?:i|o)?[tr]p[smhd]\b|throttl|too many requests|please wait|"
    r"try again (?:in|later)|retry[ -]after|slow down|request rate|\bburst|in a short time|\bcooldown|"
    r"\ba (?:day|minute|month|week)\b|速率|频率|频繁|限流|每(?:分钟|秒|小时|天)|"
    # Quotas and money.
    r"quota|(?:dai|week|month|year|hour)ly|\btoday\b|this (?:hour|day|week|month)\b|\bresets (?:at|in|on)\b|\bwill reset\b|"
    r"allowance|(?:usage|spend(?:ing)?|cost) (?:limit|cap)|\bconsumed|\bused up|tokens used|\bexhausted|\bremaining\b|"
    r"\b(?:free|paid|pricing|service|usage) tier|subscription|\bplan\b|\bfor (?:this |your |the )?(?:user|key)\b|"
    r"\b(?:your|this|the|for) (?:organi[sz]ation|org|team|project|workspace|account|tenant|customer|api[ _-]?key)\b|"
    r"\b(?:org|organization|tenant|team|project)[ =:-]|当日|今日|本日|每日|每月|本月|配额|额度|用量|套餐|"
    r"credits?\b|billing|\bbalance|\bbudget|out of extra usage|insufficient funds|payment|prepaid|\$ ?\d|余额|欠费|充值|"
    # Queues and machines.
    r"queue|backlog|concurren|in[- ]flight|parallel request|(?:at|over) capacity|overloaded|batch[ _-]?size|\bbatch\b|"
    r"max_num_seqs|token bucket|并发|排队|out of memory|\boom\b|outofmemory|\bcuda\b|\bgpu|\bvram\b|kv cache|allocat|"
    r"显存|内存|\b(?:host|device|system|process|unified|physical|available|free|enough|insufficient|wired) (?:memory|ram)\b|"
    r"memory (?:limit|guard|ceiling|pressure|budget|cap)\b|"
    # Bytes, characters, media and documents.
    r"\b(?:bytes|[kmg]i?b)\b|\d[kmg]b\b|\bchar(?:acter)?s?\b|message size \d|string (?:value )?(?:length|too long)|"
    r"string_above_max|array (?:too long|length)|array_above|pixels|\bimages?\b|\bpages?\b|\bpdfs?\b|\bfiles?\b(?! \")|"
    r"attachment|upload|\baudio|\bvideo|\bvoice|\bspeech|transcri|rerank|payload|request entity|request_too_large|"
    r"content[- ]length|member must have length|document|(?:dimension|resolution)s?\b|图片|图像|文件|上传|音频|视频|字符|字节|"
    # Counts of anything but tokens.
    r"(?:number|(?<!token )(?<!tokens )count) of (?:(?!tokens?\b)[\w'-]+ ){0,3}"
    r"(?:messages|turns|items|blocks|parts|images|entries|exchanges|choices|tools|functions|words|lines|rows|conversations)\b|"
    r"\b(?:(?:message|turn|item|block|word|line|row) count|(?:turn|item|block|word|line|row) limit)|"
    r"\btoo many (?:(?!tokens?\b)\w+ ){0,2}(?:messages|turns|blocks|parts|words|lines)\b|"
    r"(?:limit|maximum|max|at most|only|up to|than|exceeds?)(?: of| is|:)? \d[\d,. ]{0,12}(?:(?!tokens?\b)[a-z-]+ )?"
    r"(?:messages|turns|items|blocks|parts|entries|exchanges|choices|words|lines|rows|conversations)\b|"
    r"^(?!.*\btokens?\b).*\d (?:\w+ )?(?:messages|turns|blocks|parts|entries|exchanges|words|lines|rows)\b|"
    # Small limits, which are no windows.
    r"(?:exceed\w{0,3}|max(?:imum)?|limit|(?:more|longer|larger|greater) than|at most)(?: (?:of|is|the|number|length|limit|to)){0,3}"
    r"[ :=(]{1,2}\d{1,2}(?![\dkm]|[.,'_ ]\d)|"
    # Other models and unreadable answers.
    r"(?<!position )(?<!positional )\bembed(?:ding|der)?s?\b|\btts\b|text[- ]to[- ]speech|\bclassifi|\bsearch quer(?:y|ies)|嵌入|向量|"
    r"\b(?:pars(?:e|ing)|decod(?:e|ing)|deseriali[sz]\w*) (?:\w+ ){0,3}(?:response|answer|chunk|json|output|event)|"
    r"\bline \d{1,9},? column \d|\(char \d|unexpected (?:token|end of)|expecting value|invalid json|"
    # Names and schemas.
    r"\bur[il]s?\b|\bheaders?\b|user ?name|filename|metadata|logit_bias|\blabels?\b|\btitle|fingerprint|cache_key|"
    r"\b(?:number of|too many) (?:tools|functions|stop|inputs|items|messages|entries|properties|documents|entities)|"
    r"\b(?:tool|function|user|name|description|key|stop sequence|session(?: id)?|field|element|property)s?'? (?:name |description |id )?"
    r"(?:length |(?:is |are |was )?(?:string )?too long|exceeds)|\d (?:items|inputs|properties|tools|functions|requests|entries)\b|"
    r"regex|grammar|schema|json mode|cache_control|caching|breakpoint|参数 ?[a-z]|用户名|名称|标题|"
    # Guardrails and access.
    r"guard(?:rail)?s?\b|moderation|content[ _-]?(?:filter|policy|management)|safety|polic(?:y|ies)|\bpii\b|prompt[ _-]shield|"
    r"injection|jailbreak|toxic|violat|\bblocked|scanne[rd]|sensitive|security|敏感|审核|违规|安全|"
    r"(?:access|api|auth\w{0,10}|csrf|jwt|bearer|refresh|session|invalid|active|personal) tokens?\b|\btoken (?:expired|bucket)|"
    r"unauthori[sz]ed|forbidden|permission|\bscopes?\b|api key|"
    # Models and settings.
    r"deprecat|\bretire|sunset|end[- ]of[- ]life|decommission|discontinu|no longer (?:available|supported|served)|migrate|"
    r"not (?:found|available|enabled|supported|a known)|does not (?:exist|support)|unsupported|unknown|下线|停用|弃用|"
    r"must be a positive|user-specified|derived max|"
    # Broken messages.
    r"tool_use_id|tool_call_id|tool_calls' must be|tool result blocks|non-empty content|thinking\.budget_tokens|"
    r"must be greater than (?:or equal to )?`?(?:thinking|0|1\b)|at least (?:1|one)\b|requires? [\w ]{0,40}at least \d|"
    r"(?:too|minimum|fewer|least \d{1,5} tokens) (?:short|small|of)\b.{0,20}\bcach|"
    # The answer, and time.
    r"\b(?:response|completion|answer|generated output|stream chunk|chunk|buffer|output parser)s? (?:is |was |has )?(?:been )?"
    r"(?:too|exceed|overflow|reached|allowed)|(?:produced|generated) too|output limit|stack overflow|integer overflow|"
    r"timed? ?out|took (?:too long|longer)|too long to (?:process|respond|complete|generate|answer)|deadline|\bidle\b|\bseconds?\b|"
    r"\bminutes?\b|context cancel|max(?:imum)? (?:age|(?:number of )?retries)|超时|时长|秒|"
    # Contexts of other things.
    r"(?:browser|container|execution|application|ssl|tls|servlet|request|trace) contexts?\b(?! (?:window|size))|"
    r"context (?:variable|cache)|\d contexts\b"
)
"""Topics that are read in the whole error, in its codes too: one of these words hides every family of wordings."""

RATE_TOO_LARGE = Pattern(
    "rate_too_large",
    r"(?:request too large|rate limit reached).{0,200}?limit:? {limit},? (?:used:? \d{1,12},? )?requested:? {input}",
)
"""A single request above the rate limit itself: waiting does not help, only a smaller request does. It shows no window."""
