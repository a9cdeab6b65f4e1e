"""How the servers that people run themselves word an overflow: vLLM, SGLang, TGI, llama.cpp and others."""

from __future__ import annotations

from ctx_hooks.overflow.patterns.pattern import Pattern, pattern

INFERENCE_SERVERS: tuple[Pattern, ...] = (
    pattern(
        "grpc_message",
        r"(?:sent|received|send|receive) message larger than max|message larger than max \(\d",
        "Sent message larger than max (50000056 vs. 20971520)",
        "https://grpc.github.io/grpc/core/md_doc_statuscodes.html",
    ),
    pattern(
        "tgi",
        r"must be <= {limit}\. given: {input} `inputs` tokens and {output} `max_new_tokens`",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 6204 `inputs` tokens and 2047 "
        "`max_new_tokens`",
        "https://github.com/huggingface/chat-ui/issues/1149",
        kind="input_plus_output",
    ),
    pattern(
        "tgi_inputs",
        r"`inputs` must have less than {limit} tokens\. given: {input}",
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 1503",
        "https://github.com/huggingface/text-generation-inference",
    ),
    pattern(
        "vllm_request_has",
        r"maximum context length is {limit} tokens\. however, your request has {input} input tokens",
        "This model's maximum context length is 262144 tokens. However, your request has 1000010 input tokens.",
        "https://github.com/vllm-project/vllm",
    ),
    pattern(
        "vllm_passed",
        r"you passed {input} input tokens and requested {output} output tokens\. however, the model's context length is only "
        r"{limit}",
        "You passed 98305 input tokens and requested 32768 output tokens. However, the model's context length is only 131072 "
        "tokens, resulting in a maximum input length of 98304 tokens.",
        "https://github.com/vllm-project/vllm",
        kind="input_plus_output",
    ),
    pattern(
        "vllm_at_least",
        r"maximum context length is {limit} tokens\. however, you requested {output} output tokens and your prompt contains at "
        r"least {input} input tokens",
        "This model's maximum context length is 4096 tokens. However, you requested 1 output tokens and your prompt contains "
        "at least 4096 input tokens, for a total of at least 4097 tokens.",
        "https://github.com/vllm-project/vllm-ascend/issues/11557",
        at_least=True,
        kind="input_plus_output",
    ),
    pattern(
        "vllm_characters",
        r"maximum context length is {limit} tokens\. however, you requested {output} output tokens and your prompt contains "
        r"\d+ characters",
        "This model's maximum context length is 131072 tokens. However, you requested 131072 output tokens and your prompt "
        "contains 14233 characters (more than 0 characters, which is the upper bound for 0 input tokens).",
        "https://github.com/gi-dellav/zerostack/issues/22",
        kind="input_plus_output",
    ),
    pattern(
        "vllm_below_zero",
        r"max_(?:completion_)?tokens must be at least 1, got -\d{2}",
        "max_tokens must be at least 1, got -4312.",
        "https://github.com/vllm-project/vllm/issues/2418",
        kind="input_plus_output",
    ),
    pattern(
        "vllm_decoder",
        r"prompt \((?:total )?length {input}\) is (?:longer|too long).{0,40}maximum model length of {limit}",
        "The decoder prompt (length 100001) is longer than the maximum model length of 100000.",
        "https://github.com/vllm-project/vllm",
    ),
    pattern(
        "vllm_max_tokens",
        r"max_(?:completion_)?tokens[`'\"]? is too large: {output}\.? this model's maximum context length is {limit} tokens and "
        r"your request has {input} input tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and "
        "your request has 6000 input tokens (4096 > 8192 - 6000).",
        "https://github.com/vllm-project/vllm",
        kind="input_plus_output",
    ),
    pattern(
        "sglang_requested",
        r"maximum context length of {limit} tokens\. you requested a total of {total} tokens: {input} tokens from the input "
        r"messages and {output} tokens",
        "Requested token count exceeds the model's maximum context length of 262144 tokens. You requested a total of 263925 "
        "tokens: 199925 tokens from the input messages and 64000 tokens for the completion.",
        "https://github.com/sgl-project/sglang",
        kind="input_plus_output",
    ),
    pattern(
        "sglang_bare",
        r"requested token count exceeds the model's maximum context length of {limit}",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "https://github.com/sgl-project/sglang",
        kind="input_plus_output",
    ),
    pattern(
        "llama_cpp_python",
        r"requested tokens \({input}\) exceed context window of {limit}",
        "Requested tokens (2285) exceed context window of 2048",
        "https://github.com/abetlen/llama-cpp-python",
    ),
    pattern(
        "tensorrt_llm",
        r"prompt length \({input}\) exceeds maximum (?:sequence|input) length \({limit}\)",
        "Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)",
        "https://github.com/triton-inference-server/tensorrtllm_backend/issues/141",
    ),
    pattern(
        "tensorrt_llm_sum",
        r"sum of prompt length \({input}\)(?:,| and) query length \({more}\)(?:,? (?:and )?max_tokens \({output}\))? should not "
        r"exceed max_(?:num_tokens|seq_len) \({limit}\)",
        "The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)",
        "https://github.com/NVIDIA/TensorRT-LLM/issues/9277",
        kind="input_plus_output",
    ),
    pattern(
        "tensorrt_llm_no_room",
        r"= max_seq_len \({limit}\) - `?splited_prompt_len`? \({input}\)(?: - `?query_token_len`? \({more}\))?",
        "`default_max_tokens` (-152) must be greater than 0, `default_max_tokens` (-152) = max_seq_len (8192) - "
        "`splited_prompt_len` (8000) - `query_token_len` (344)",
        "https://github.com/NVIDIA/TensorRT-LLM",
    ),
)
