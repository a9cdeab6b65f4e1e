"""Errors that are no overflow, however much they look like one.

Mistaking another error for an overflow cuts a conversation for nothing and teaches a wrong limit; a missed overflow is only
forwarded. A wording whose figures have a known meaning still takes precedence.
"""

import re

from ctx_hooks.overflow.patterns.wordings import pattern

OTHER_STATUSES = frozenset({401, 402, 403, 404, 405, 408, 409, 429})
"""Access, payment, absence, time and rate: no provider answers an overflow with these in words of its own making."""

OTHER_CODE = re.compile(
    r"^(?!.*_error$)(?:.*(?:unsupported|unknown|unrecognized|missing|not_?found|api_?key|rate_?limit|quota|billing|content_?(?:filter|"
    r"policy)|moderation|permission|forbidden)|invalid_(?!request|param|arg|input|prompt)|(?:array|integer|decimal|number)_(?:above|below))",
    re.IGNORECASE,
)
"""Codes of other faults: only a limit of the output has one of these too, "max_tokens is too large" with `invalid_value`. Types
such as `authentication_error` and `rate_limit_error` are classes, and come with overflows too."""

TOO_MANY_BYTES = pattern(
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
    r"rate[ _-]?limit|(?:token|count|request)[ _]rate|per[ _-](?:min(?:ute)?|day|hour|second|week|month)|"
    r"/ ?(?:s|sec|min|minute|h|hour|day|month)\b|\b(?:i|o)?[tr]p[smhd]\b|throttl|too many requests|please wait|"
    r"try again (?:in|later)|retry[ -]after|slow down|\bburst|\ba (?:day|minute|month|week)\b|速率|频率|频繁|限流|每(?:分钟|秒|小时|天)|"
    # Quotas and money.
    r"quota|(?:dai|week|month|year|hour)ly|\btoday\b|this (?:hour|day|week|month)\b|\bwill reset\b|allowance|"
    r"(?:usage|spend(?:ing)?|cost) (?:limit|cap)|\bused up|tokens used|\bexhausted|\bremaining\b|subscription|\bplan\b|"
    r"\b(?:free|paid|pricing|service|usage) tier|\bfor (?:this |your |the )?(?:user|key)\b|"
    r"\b(?:your|this|the|for) (?:organi[sz]ation|org|team|project|workspace|account|tenant|customer|api[ _-]?key)\b|"
    r"\b(?:org|organization|tenant|team|project)[ =:-]|当日|今日|本日|每日|每月|本月|配额|额度|用量|套餐|"
    r"credits?\b|billing|\bbalance|\bbudget|extra usage|insufficient funds|payment|prepaid|\$ ?\d|余额|欠费|充值|"
    # Queues and machines.
    r"queue|concurren|in[- ]flight|(?:at|over) capacity|overloaded|\bbatch\b|max_num_seqs|并发|排队|out ?of ?memory|\boom\b|\bcuda\b|"
    r"\bgpu|\bvram\b|kv cache|allocat|显存|内存|memory (?:limit|guard|ceiling|pressure|budget|cap)\b|"
    r"\b(?:host|device|system|process|unified|physical|available|free|enough|insufficient|wired) (?:memory|ram)\b|"
    # Bytes, characters, media and documents.
    r"\b(?:bytes|[kmg]i?b)\b|\d[kmg]b\b|\bchar(?:acter)?s?\b|string (?:value )?(?:length|too long)|array (?:too long|length)|"
    r"pixels|\bimages?\b|\bpages?\b|\bpdfs?\b|\bfiles?\b(?! \")|attachment|upload|\baudio|\bvideo|\bvoice|\bspeech|transcri|rerank|"
    r"payload|request entity|content[- ]length|document|resolution|图片|图像|文件|上传|音频|视频|字符|字节|"
    # Counts of anything but tokens, and small limits, which are no windows.
    r"(?:number|(?<!token )(?<!tokens )count) of (?:(?!tokens?\b)[\w'-]+ ){0,3}"
    r"(?:messages|turns|items|blocks|parts|images|entries|exchanges|choices|tools|functions|words|lines|rows|conversations)\b|"
    r"\btoo many (?:(?!tokens?\b)\w+ ){0,2}(?:messages|turns|blocks|parts|words|lines|tools|items)\b|"
    r"(?:limit|maximum|max|at most|only|up to|than|exceeds?)(?: of| is|:)? \d[\d,. ]{0,12}(?:(?!tokens?\b)[a-z-]+ )?"
    r"(?:messages|turns|items|blocks|parts|entries|exchanges|choices|words|lines|rows|conversations)\b|"
    r"^(?!.*\btokens?\b).*\d (?:\w+ )?(?:messages|turns|blocks|parts|entries|exchanges|words|lines|rows)\b|"
    r"(?:exceed\w{0,3}|max(?:imum)?|limit|(?:more|longer|larger|greater) than|at most)(?: (?:of|is|the|number|length|limit|to)){0,3}"
    r"[ :=(]{1,2}\d{1,2}(?![\dkm]|[.,'_ ]\d)|"
    # Other models, names and schemas.
    r"(?<!position )(?<!positional )\bembed(?:ding|der)?s?\b|\btts\b|\bclassifi|嵌入|向量|end[- ]of[- ]life|deprecat|"
    r"\burls?\b|\bheaders?\b|user ?name|filename|metadata|\blabels?\b|\btitle|fingerprint|schema|grammar|caching|参数 ?[a-z]|用户名|名称|标题|"
    r"\b(?:tool|function|user|name|description|key|field|property)s?'? (?:name |description )?(?:length |(?:is |are )?too long|exceeds)|"
    # Guardrails and access.
    r"guard(?:rail)?s?\b|moderation|content[ _-]?(?:filter|policy)|safety|polic(?:y|ies)|injection|toxic|\bblocked|敏感|审核|违规|安全|"
    r"(?:access|api|auth\w{0,10}|session|invalid) tokens?\b|unauthori[sz]ed|forbidden|permission|api key|"
    # The answer, time, and contexts of other things.
    r"\b(?:response|completion|answer|output)s? (?:is |was |has )?(?:too|exceed|reached)|(?:produced|generated) too|output limit|"
    r"requires? [\w ]{0,40}at least \d|timed? ?out|too long to (?:process|respond|generate)|\bseconds?\b|max(?:imum)? (?:age|retries)|超时|"
    r"(?:browser|container|execution|application|ssl|tls|servlet|request|trace) contexts?\b(?! (?:window|size))"
)
"""Topics that are read in the whole error, in its codes too: one of these words hides every family of wordings."""

RATE_TOO_LARGE = pattern(
    "rate_too_large",
    r"(?:request too large|rate limit reached).{0,200}?limit:? {limit},? (?:used:? \d{1,12},? )?requested:? {input}",
)
"""A single request above the rate limit itself: waiting does not help, only a smaller request does. It shows no window."""
