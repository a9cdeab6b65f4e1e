"""A real small model that writes summaries: SmolLM2-135M-Instruct, asked and checked as the proxy does."""

from __future__ import annotations

import llama_cpp
from judge import WINDOW_TOKENS, weights

from ctx_hooks.addons.summaries.candidates import SummaryTask
from ctx_hooks.addons.summaries.check import Rejected, checked
from ctx_hooks.addons.summaries.prompt import parts_of, prompt_of
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens

LOCAL_TOKENS = LocalTokens(int(WINDOW_TOKENS / 1.4))
"""Its vocabulary has up to 1.4 times as many tokens of code as o200k_base, which counts here."""


REPEAT_PENALTY = 1.1
"""What Ollama asks with by default. Without one, so small a model repeats a line until its answer is cut off."""


class SmallModel:
    """The model, in this process. Its answers are those of the most probable tokens."""

    def __init__(self, threads: int) -> None:
        self._llama = llama_cpp.Llama(str(weights()), n_ctx=WINDOW_TOKENS, n_threads=threads, verbose=False)

    def summary(self, task: SummaryTask, settings: SummarySettings, counter: Counter) -> str | Rejected:
        """Return what the model has written of all parts, or why one of its answers was rejected."""
        text: str | Rejected = task.before
        for part in parts_of(task, settings, LOCAL_TOKENS, counter):
            answer = self._llama.create_chat_completion(
                prompt_of(part, str(text), settings),
                max_tokens=settings.max_tokens,
                temperature=0.0,
                repeat_penalty=REPEAT_PENALTY,
            )["choices"][0]
            whole = answer["finish_reason"] != "length"
            text = checked(answer["message"]["content"] or "", task, settings, counter) if whole else Rejected("too_long")
            if isinstance(text, Rejected):
                break
        return text
