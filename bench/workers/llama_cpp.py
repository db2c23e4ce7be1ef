"""llama.cpp, called through the C API of llama-cpp-python, with the settings that llama.cpp itself chooses.

Run by the peers' Python: `python -m bench.workers.llama_cpp`.
"""

import ctypes
import importlib.metadata
import time
from typing import Any

import llama_cpp as C
import numpy as np
import numpy.typing as npt

from bench.accuracy import log_probs_at
from bench.prompt import prompt_ids
from bench.workers.protocol import serve

N_CTX = 2048
PREFILL = 0  # key of the context in which prompts are processed; the others are as long as their key
FILE_TYPES = {
    "F16": C.LLAMA_FTYPE_MOSTLY_F16,
    "Q4_0": C.LLAMA_FTYPE_MOSTLY_Q4_0,
    "Q8_0": C.LLAMA_FTYPE_MOSTLY_Q8_0,
    "Q4_K_M": C.LLAMA_FTYPE_MOSTLY_Q4_K_M,
}


@C.llama_log_callback
def _ignore(level: int, text: bytes, user_data: object) -> None:
    pass


class LlamaCpp:
    """One model, and a context (keys and values) for each length that is decoded at."""

    def __init__(self) -> None:
        C.llama_log_set(_ignore, ctypes.c_void_p(0))
        C.llama_backend_init()
        self._model: Any = None
        self._threads = 1
        self._vocab_size = 0
        self._contexts: dict[int, Any] = {}

    def about(self) -> dict[str, Any]:
        """See `Worker`."""
        version = importlib.metadata.version("llama-cpp-python")
        features = [part.strip() for part in C.llama_print_system_info().decode().split("|")]
        used = [part.removesuffix(" = 1").removeprefix("CPU : ") for part in features if part.endswith("= 1")]
        return {"version": f"llama-cpp-python {version}", "detail": " ".join(used)}

    def load(self, model: str, threads: int) -> dict[str, Any]:
        """See `Worker`."""
        for context in self._contexts.values():
            C.llama_free(context)
        self._contexts.clear()
        if self._model is not None:
            C.llama_model_free(self._model)
        self._model = C.llama_model_load_from_file(model.encode(), C.llama_model_default_params())
        if not self._model:
            raise ValueError(f"cannot load {model}")
        self._threads = threads
        self._vocab_size = C.llama_vocab_n_tokens(C.llama_model_get_vocab(self._model))
        return {}

    def prefill(self, n: int, seed: int) -> dict[str, Any]:
        """See `Worker`."""
        context = self._contexts.get(PREFILL) or self._new_context(PREFILL)
        C.llama_memory_clear(C.llama_get_memory(context), True)
        ids = prompt_ids(n, seed)
        start = time.perf_counter()
        self._next(context, ids)
        return {"seconds": time.perf_counter() - start}

    def decode(self, context: int, n: int) -> dict[str, Any]:
        """See `Worker`."""
        ids = prompt_ids(context + 1, seed=0)
        state = self._contexts.get(context)
        if state is None:
            state = self._new_context(context)
            self._next(state, ids[:context])
        token = ids[context]
        start = time.perf_counter()
        for _ in range(n):
            token = self._next(state, [token])
        seconds = time.perf_counter() - start
        C.llama_memory_seq_rm(C.llama_get_memory(state), 0, context, -1)
        return {"seconds": seconds}

    def quantize(self, source: str, target: str, kind: str) -> dict[str, Any]:
        """Write `source` again with the weights of `kind`."""
        params = C.llama_model_quantize_default_params()
        params.ftype, params.allow_requantize = FILE_TYPES[kind], True
        if C.llama_model_quantize(source.encode(), target.encode(), params) != 0:
            raise ValueError(f"cannot quantize to {kind}")
        return {}

    def log_probs(self, ids: list[int], wanted: list[list[int]]) -> dict[str, Any]:
        """After each of `ids`, the log-probabilities of the tokens wanted there: `rows`."""
        context = self._contexts.get(PREFILL) or self._new_context(PREFILL)
        C.llama_memory_clear(C.llama_get_memory(context), True)
        batch = C.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, i, 1, 0
            batch.logits[i] = True
        self._decode(context, batch)
        rows = np.stack([self._logits(context, i).copy() for i in range(len(ids))])
        C.llama_batch_free(batch)
        return {"rows": log_probs_at(rows, wanted).tolist()}

    def _new_context(self, key: int) -> Any:
        params = C.llama_context_default_params()
        params.n_ctx = N_CTX
        params.n_threads = params.n_threads_batch = self._threads
        self._contexts[key] = context = C.llama_init_from_model(self._model, params)
        if not context:
            raise MemoryError("no context")
        return context

    def _next(self, context: Any, ids: list[int]) -> int:
        tokens = (C.llama_token * len(ids))(*ids)
        self._decode(context, C.llama_batch_get_one(tokens, len(ids)))
        return int(np.argmax(self._logits(context, -1)))

    def _decode(self, context: Any, batch: Any) -> None:
        if C.llama_decode(context, batch) != 0:
            raise ValueError("llama_decode failed")

    def _logits(self, context: Any, row: int) -> npt.NDArray[np.float32]:
        return np.ctypeslib.as_array(C.llama_get_logits_ith(context, row), (self._vocab_size,))


if __name__ == "__main__":
    engine = LlamaCpp()
    serve(engine, quantize=engine.quantize, log_probs=engine.log_probs)
