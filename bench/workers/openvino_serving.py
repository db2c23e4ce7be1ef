"""OpenVINO GenAI's continuous batching. Run by the peers' Python: `python -m bench.workers.openvino_serving`."""

import importlib.metadata
import time
from typing import Any

import numpy as np
import openvino
import openvino_genai

from bench.prompt import prompt_ids
from bench.workers.protocol import answer_questions

CACHE_GIB = 2


class OpenVinoServing:
    """One pipeline with paged attention."""

    def __init__(self) -> None:
        self._pipeline: Any = None

    def about(self) -> dict[str, Any]:
        """Return the version."""
        return {"version": importlib.metadata.version("openvino-genai"), "detail": "ContinuousBatchingPipeline"}

    def load(self, model: str, threads: int) -> dict[str, Any]:
        """Load a weights file in place of the one before."""
        self._pipeline = None
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.cache_size = CACHE_GIB
        scheduler.enable_prefix_caching = False
        self._pipeline = openvino_genai.LLMPipeline(
            model, "CPU", scheduler_config=scheduler, INFERENCE_NUM_THREADS=threads
        )
        return {}

    def concurrent(self, requests: int, context: int, n: int, seed: int) -> dict[str, Any]:
        """Answer `requests` prompts of `context` tokens at the same time with `n` tokens each: `seconds`."""
        config = openvino_genai.GenerationConfig(
            max_new_tokens=n, min_new_tokens=n, ignore_eos=True, do_sample=False, apply_chat_template=False
        )
        tokens = np.array([prompt_ids(context, seed * 1000 + i) for i in range(requests)], np.int64)
        inputs = openvino_genai.TokenizedInputs(openvino.Tensor(tokens), openvino.Tensor(np.ones_like(tokens)))
        start = time.perf_counter()
        answer = self._pipeline.generate(inputs, config)
        seconds = time.perf_counter() - start
        if any(len(tokens) != n for tokens in answer.tokens):
            raise ValueError("an answer has another length")
        return {"seconds": seconds}


if __name__ == "__main__":
    w = OpenVinoServing()
    answer_questions({"about": w.about, "load": w.load, "concurrent": w.concurrent})
