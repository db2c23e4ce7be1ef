"""modelc's scheduler without the server around it: `python -m bench.workers.modelc_serving`."""

import itertools
import threading
import time
from typing import Any

import numpy as np

from bench.prompt import prompt_ids
from bench.workers.protocol import answer_questions
from modelc import runtime
from modelc.version import version_line


class ModelcServing:
    """One loaded model, and requests to it."""

    def __init__(self) -> None:
        self._model: runtime.TextModel | None = None

    def about(self) -> dict[str, Any]:
        """Return the version."""
        return {"version": version_line(), "detail": "continuous batching, keys and values f16"}

    def load(self, model: str, threads: int, **options: Any) -> dict[str, Any]:
        """Load a weights file in place of the one before, with `modelc.load`'s options."""
        if self._model is not None:
            self._model.close()
        self._model = runtime.load(model, threads=threads, **options).as_text_model()
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

    def repeated(self, context: int, question: int, seed: int) -> dict[str, Any]:
        """Times to the first token of two prompts that begin with the same `context` tokens: `seconds`."""
        shared = prompt_ids(context, seed * 1000)
        seconds = []
        for i in (1, 2):
            start = time.perf_counter()
            done, times = self._submit([*shared, *prompt_ids(question, seed * 1000 + i)], 2)
            done.wait()
            seconds.append(times[0] - start)
        return {"seconds": seconds}

    def copying(self, text: str, n: int) -> dict[str, Any]:
        """Ask for a text to be repeated: `seconds` of `n` tokens, and the `answer`."""
        assert self._model is not None, "`load` comes first"
        messages = [{"role": "user", "content": f"Repeat this text word by word, nothing else:\n\n{text}"}]
        prompt = self._model.chat_prompt_ids(messages)
        self._model.generate(prompt, max_tokens=2)  # the prompt is in the prefix cache
        start = time.perf_counter()
        answer = self._model.generate(prompt, max_tokens=n)
        return {"seconds": time.perf_counter() - start, "answer": answer}

    def log_probabilities(self, text: str, n: int, to: str) -> dict[str, Any]:
        """Natural log-probabilities behind every eighth of the first `n` tokens of a text, float32, into a file."""
        assert self._model is not None, "`load` comes first"
        logits = self._model.logits(self._model.tokenize(text)[:n])[7::8].astype(np.float64)
        logits -= logits.max(axis=1, keepdims=True)
        np.save(to, (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))).astype(np.float32))
        return {"positions": len(logits)}

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
            "repeated": w.repeated,
            "copying": w.copying,
            "log_probabilities": w.log_probabilities,
        }
    )
