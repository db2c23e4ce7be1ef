"""OpenVINO GenAI, which reads the GGUF file itself. Run by the peers' Python: `python -m bench.workers.openvino`.

Its default backend keeps finished prompts and answers them from memory; `SDPA` computes every prompt, and for one
sequence at a time is as fast.
"""

import importlib.metadata
import time
from typing import Any

import numpy as np
import openvino
import openvino_genai

from bench.prompt import prompt_ids
from bench.workers.protocol import serve

BACKEND = "SDPA"


class OpenVino:
    """One pipeline. Its sampler runs inside, so an answer's first token marks the end of the prompt."""

    def __init__(self) -> None:
        self._pipeline: Any = None

    def about(self) -> dict[str, Any]:
        """See `Worker`."""
        return {"version": importlib.metadata.version("openvino-genai"), "detail": f"ATTENTION_BACKEND={BACKEND}"}

    def load(self, model: str, threads: int) -> dict[str, Any]:
        """See `Worker`."""
        self._pipeline = None  # the former one's threads and memory go first
        self._pipeline = openvino_genai.LLMPipeline(
            model, "CPU", ATTENTION_BACKEND=BACKEND, INFERENCE_NUM_THREADS=threads
        )
        return {}

    def prefill(self, n: int, seed: int) -> dict[str, Any]:
        """See `Worker`."""
        seconds, _ = self._generate(prompt_ids(n, seed), 1)
        return {"seconds": seconds}

    def decode(self, context: int, n: int) -> dict[str, Any]:
        """See `Worker`. The first token comes out of the prompt; the time is that of the `n` after it."""
        seconds, first_token_s = self._generate(prompt_ids(context, seed=0), n + 1)
        return {"seconds": seconds - first_token_s}

    def _generate(self, ids: list[int], n: int) -> tuple[float, float]:
        """Seconds in all, and until the first token."""
        config = openvino_genai.GenerationConfig(
            max_new_tokens=n, min_new_tokens=n, ignore_eos=True, do_sample=False, apply_chat_template=False
        )
        tokens = np.array([ids], np.int64)
        inputs = openvino_genai.TokenizedInputs(openvino.Tensor(tokens), openvino.Tensor(np.ones_like(tokens)))
        start = time.perf_counter()
        answer = self._pipeline.generate(inputs, config)
        seconds = time.perf_counter() - start
        if len(answer.tokens[0]) != n:
            raise ValueError(f"{len(answer.tokens[0])} tokens came instead of {n}")
        return seconds, answer.perf_metrics.raw_metrics.m_times_to_first_token[0] * 1e-6  # microseconds


if __name__ == "__main__":
    serve(OpenVino())
