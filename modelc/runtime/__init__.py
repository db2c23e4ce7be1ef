"""From a packed model to tokens: engine, scheduler, sampling, and the library's `load`. Knows nothing of HTTP."""

from modelc.runtime.generation import Chunk, Generation
from modelc.runtime.model import LanguageModel, load
from modelc.runtime.sampling import Sampling

__all__ = ["Chunk", "Generation", "LanguageModel", "Sampling", "load"]
