"""modelc's scheduler without the server around it: `python -m bench.workers.modelc_serving`."""

import itertools
import threading
import time
from typing import Any

from bench.prompt import prompt_ids
from bench.workers.protocol import answer_questions
from modelc import runtime
from modelc.version import version_line


class ModelcServing:
    """One loaded model, and requests to it."""

    def __init__(self) -> None:
        self._model: runtime.LanguageModel | None = None

    def about(self) -> dict[str, Any]:
        """Return the version."""
        return {"version": version_line(), "detail": "continuous batching, keys and values f16"}

    def load(self, model: str, threads: int) -> dict[str, Any]:
        """Load a weights file in place of the one before."""
        if self._model is not None:
            self._model.close()
        self._model = runtime.load(model, threads=threads)
        return {}

    def concurrent(self, requests: int, context: int, n: int, seed: int) -> dict[str, Any]:
        """Answer `requests` prompts of `context` tokens at the same time with `n` tokens each: `seconds`."""
        prompts = [prompt_ids(context, seed * 1000 + i) for i in range(requests)]
        start = time.perf_counter()
        waiting = [self._submit(prompt, n)[0] for prompt in prompts]
        for done in waiting:
            done.wait()
        return {"seconds": time.perf_counter() - start}

    def first_token(self, context: int, others: int, other_context: int, seed: int) -> dict[str, Any]:
        """Time to the first token of a prompt of `context` tokens just behind `others` long ones: `seconds`."""
        long_prompts = [prompt_ids(other_context, seed * 1000 + 1 + i) for i in range(others)]
        waiting = [self._submit(prompt, 32)[0] for prompt in long_prompts]
        time.sleep(0.05 if others else 0.0)
        start = time.perf_counter()
        done, times = self._submit(prompt_ids(context, seed * 1000), 2)
        done.wait()
        for other in waiting:
            other.wait()
        return {"seconds": times[0] - start}

    def gaps(self, context: int, n: int, other_context: int, seed: int) -> dict[str, Any]:
        """Times between an answer's tokens, alone or while a prompt of `other_context` tokens arrives: `seconds`."""
        done, times = self._submit(prompt_ids(context, seed * 1000), n)
        while len(times) < 10:
            time.sleep(0.001)
        others = [self._submit(prompt_ids(other_context, seed * 1000 + 1), 1)[0]] if other_context else []
        done.wait()
        for other in others:
            other.wait()
        return {"seconds": [b - a for a, b in itertools.pairwise(times[10:])]}

    def _submit(self, prompt: list[int], n: int) -> tuple[threading.Event, list[float]]:
        """Start an answer of exactly n tokens; returns its end, and when its tokens came."""
        assert self._model is not None, "`load` comes first"
        done, times = threading.Event(), list[float]()

        def sink(chunk: runtime.Chunk) -> None:
            times.extend([time.perf_counter()] * len(chunk.token_ids))
            if chunk.finish_reason is not None:
                done.set()

        no_end = dict.fromkeys(self._model.tokenizer.eog_ids, -1e6)
        self._model.submit(prompt, runtime.Sampling(max_tokens=n, logit_bias=no_end), sink)
        return done, times


if __name__ == "__main__":
    w = ModelcServing()
    answer_questions(
        {
            "about": w.about,
            "load": w.load,
            "concurrent": w.concurrent,
            "first_token": w.first_token,
            "gaps": w.gaps,
        }
    )
