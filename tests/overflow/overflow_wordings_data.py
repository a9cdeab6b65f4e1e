"""Overflows in the manner of real servers that no specific pattern knows: text, limit and input where the text is clear."""

Wording = tuple[str, "int | None", "int | None"]

SETTINGS: tuple[Wording, ...] = (
    ("The sum of prompt length (9,351), query length (12) should not exceed max_num_tokens (8,192)", 8192, 9363),
    ("The sum of prompt length (5000.0), query length (4000.0) should not exceed max_num_tokens (8192)", 8192, 9000),
    ("input length + max_new_tokens = 9000 must be <= max_total_tokens (8192)", 8192, None),
    ("ValueError: prompt_token_ids of length 9000 cannot exceed maxSeqLen (8192)", 8192, 9000),
    ("`default_max_tokens` (-152) = max_seq_len (8192) - `splited_prompt_len` (8344) - `query_token_len` (0)", 8192, 8344),
)
"""A limit named after a server's setting."""

PROSE: tuple[Wording, ...] = (
    ("context_length_exceeded", None, None),
    ("Error: ContextWindowExceeded", None, None),
    ("Context length exceeded: 9000 > 8192", 8192, 9000),
    ("the conversation is longer than the model's context size", None, None),
    ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 8000, None),
    ("max tokens of 8192 exceeded by the prompt", 8192, None),
    ("Exceeds the model's maximum input length of 32k tokens", 32000, None),
    ("Input exceeds the model's 128K context window", 128000, None),
    ("maximum context window reached, please clear the conversation", None, None),
)
"""Sentences in English."""

LANGUAGES: tuple[Wording, ...] = (
    ("请求的 token 数 (40000) 超出模型上下文窗口 (32768)", 32768, 40000), ("Prompt 超长", None, None),
    ("对话内容过长,请开启新的对话", None, None),
    ("输入的 tokens 总数超过最大长度限制 8192", 8192, None), ("消息总长度超过模型限制", None, None),
    ("上下文太长,请缩短后重试", None, None),
    ("提示词长度超出最大限制", None, None), ("超过最大上下文长度", None, None), ("輸入內容超過模型的上下文長度", None, None),
    ("入力が長すぎます。コンテキストウィンドウは 8192 トークンです", 8192, None),
    ("プロンプトがモデルの最大コンテキスト長 (8192) を超えています", 8192, None),
    ("入力トークン数 9000 が上限 8192 を超えました", 8192, 9000),
    ("프롬프트가 최대 컨텍스트 길이 8192를 초과했습니다", 8192, None), ("입력이 너무 깁니다", None, None),
    ("컨텍스트 윈도우를 초과하였습니다", None, None),
    ("Die Eingabe überschreitet das Kontextfenster von 8.192 Token", 8192, None),
    ("Der Prompt ist zu lang für das Modell", None, None),
    ("Die maximale Kontextlänge von 32.768 Token wurde überschritten", 32768, None),
    ("Le prompt dépasse la longueur maximale du contexte (8 192 tokens)", 8192, None),
    ("L'entrée est trop longue pour ce modèle", None, None), ("La fenêtre de contexte est dépassée", None, None),
    ("El mensaje supera la longitud máxima de contexto de 8192 tokens", 8192, None),
    ("La entrada es demasiado larga para el modelo", None, None),
    ("Se excedió la ventana de contexto del modelo", None, None),
    ("O prompt excede o tamanho máximo de contexto do modelo (8192 tokens)", 8192, None),
    ("Il prompt supera la finestra di contesto del modello", None, None),
    ("Превышена максимальная длина контекста: 9000 > 8192", 8192, 9000),
    ("Запрос слишком длинный для контекстного окна модели", None, None),
)  # fmt: skip
"""The same in other languages."""

ASSORTED: tuple[Wording, ...] = (
    (
        ("Input tokens exceed the configured limit of 8192 tokens. Your messages resulted in 20000 tokens. Please "
        "reduce the length of the messages."),
        8192, 20000,
    ),
    ("This model's maximum prompt length is 8192 but the request contains 20000 tokens.", 8192, 20000),
    (
        ("This endpoint's maximum context length is 8192 tokens. However, you requested about 21024 tokens (20000 "
        "of text input, 1024 in the output). Please reduce the length of either one, or use the "
        "context-compression plugin to compress your prompt automatically."),
        8192, 20000,
    ),
    ("Invalid request: Your request exceeded model token limit: 8192 (requested: 20000)", 8192, 20000),
    ("Prompt exceeds max length", None, None),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 8192]", 8192, None),
    (
        ("Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of "
        "21024 tokens: 20000 tokens from the input messages and 1024 tokens for the completion."),
        8192, 20000,
    ),
    (
        ("Trying to keep the first 20000 tokens when context the overflows. However, the model is loaded with "
        "context length of only 8192 tokens, which is not enough."),
        8192, 20000,
    ),
    ("Cannot process new request: Prompt length (20000) exceeds maximum sequence length (8192)", 8192, 20000),
    ("prompt token count of 20000 exceeds the limit of 8192", 8192, 20000),
    ("The total length of all messages is too long.", None, None),
    (
        ("The maximum context length of the model is 8192. However, answering your request will take 21024 tokens. "
        "Please reduce the length of the messages or the specified max_completion_tokens value."),
        8192, None,
    ),
    ("The conversation has grown to 210000 tokens; the model accepts at most 200000.", 200000, 210000),
    ("The model can only process 32768 tokens but the prompt has 40000 tokens.", 32768, 40000),
    ("This prompt is longer than what the model can handle (40000 > 32768)", 32768, 40000),
    ("Input is 40000 tokens long, but the maximum is 32768.", 32768, 40000),
    ("Invalid request: messages exceed context window", None, None), ("model's context is full: 8192 tokens", None, None),
    ("Context size has been exceeded.", None, None), ("out of context space", None, None),
    ("context shift is disabled and the prompt is too large", None, None),
    ("Input validation error: inputs tokens must be <= 4095. Given: 5000", 4095, 5000),
    ("Input validation error: The sum of 'inputs' tokens and 'max_new_tokens' must not exceed 8192", 8192, None),
    ("Your prompt uses 9000 tokens and the model's limit is 8192", 8192, 9000),
    ("Exceeded the model's token limit (8192)", 8192, None), ("Too much context: please start a new chat", None, None),
    ("超出上下文窗口限制", None, None), ("模型上下文长度不足,输入 40000 tokens,最大 32768", 32768, 40000),
    ("输入 token 数量超出限制,最大支持 8192", None, None), ("请求内容超过模型最大输入长度", None, None),
    ("会话过长,请新建会话", None, None),
    ("コンテキスト長を超過しました", None, None), ("プロンプトが長すぎます", None, None),
    ("입력 토큰 수가 최대 컨텍스트 길이를 초과합니다", None, None),
    ("Die Anfrage ist zu lang für das Kontextfenster", None, None),
    ("Trop de jetons dans le prompt : limite de contexte dépassée", None, None),
    ("El contexto es demasiado largo", None, None), ("A entrada é muito longa para o modelo", None, None),
    ("L'input è troppo lungo per il modello", None, None),
)  # fmt: skip
"""Short ones, and what servers put around them."""

RELATIVE: tuple[Wording, ...] = (
    ("The total length of the prompt (41000) and max_new_tokens (2048) exceeds the model limit of 40960", 40960, 41000),
    ("length of prompt_ids (9001) must be less than max_seq_len (8192)", 8192, 9001),
    ("Sent message larger than max (50000056 vs. 20971520)", None, None),
    ("The message you submitted was too long", None, None),
    ("Received message larger than max (50000056 vs. 20971520)", None, None),
    ("grpc: received message larger than max (5000000 vs. 4194304)", None, None),
    ("The messages you sent are too long", None, None), ("the prompt that was provided is too long", None, None),
    ("Input provided is too long", None, None),
    ("The message you entered is too long, please shorten it", None, None),
    ("The prompt you've sent is too long", None, None), ("Your submitted message is too long.", None, None),
    ("Prompt has 300 tokens, but the model's window is only 256 tokens", 256, 300),
    ("Total length of prompt (41000) plus max_new_tokens (2048) exceeds model limit 40960", 40960, 41000),
    (
        "The combined length of the input (41000) and max_tokens (2048) is greater than the model's limit of 40960", 40960,
        41000,
    ),
    ("total tokens of input and max_completion_tokens (43048) exceed the model limit (40960)", 40960, None),
    ("Prompt length 41000 and max_new_tokens 2048 exceed the limit of 40960 in total", 40960, 41000),
    ("len(prompt_ids) = 9001 must be less than max_seq_len (8192)", 8192, 9001),
    ("length of prompt_token_ids (9001) exceeds max_model_len (8192)", 8192, 9001),
    ("input_length 9001 should be smaller than max_total_length 8192", 8192, 9001),
    ("length of input_ids (9001) must not be greater than max_length (8192)", 8192, 9001),
    ("num_prompt_tokens 9001 must be < max_model_len 8192", 8192, 9001), ("The message is too long", None, None),
    ("The conversation you've submitted was too long, please start a new one", None, None),
    ("Your input was too lengthy", None, None),
    ("The message you submitted was too long, please reload the conversation and submit something shorter.", None, None),
    ("The sum of input tokens (6001) and max_tokens (4096) exceeds the model context length (8192)", 8192, 6001),
    ("prompt exceeds model context: 9,120 / 8,192 tokens", 8192, 9120),
    ("Total token count 300012 exceeds the model limit 262144", 262144, 300012),
    ("prefill tokens 40001 exceed maximum 32768", 32768, 40001),
    ("max_tokens must be at least 1, got -4312.", None, None),
    ("Total tokens of image and text exceed max message tokens", None, None),
    (
        "default_max_tokens (-812) = max_seq_len (32768) - splited_prompt_len (33580), default_max_tokens must be > 0",
        32768, 33580,
    ),
    ("Exceeded context limit by 7233 tokens (limit 32768)", 32768, 40001),
    ("input_tokens: 6001, max_tokens: 4096, context_length: 8192 -> exceeds by 1905", 8192, 6001),
    ("request_id=9912312 trace 123456789: Context length exceeded: prompt 40,001 tokens vs limit 32,768", 32768, 40001),
    ("at 1732340683 slot id 9001: the prompt exceeds the context size 8192", 8192, None),
    ("RequestID: 0217321. prompt token count of 138898 exceeds the limit of 64000", 64000, 138898),
    ("Mon, 23 Nov 2026 06:00:11: the prompt exceeds the context size 8192", 8192, None),
)  # fmt: skip
"""What was sent in a relative clause, small windows, sums, spellings of token ids, and messages larger than gRPC takes."""
