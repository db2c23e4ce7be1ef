"""From a packed model to tokens: engine, scheduler, sampling, and the library's `load`. Knows nothing of HTTP."""

from modelc.runtime.generation import Chunk, Generation
from modelc.runtime.loaded import LoadedModel
from modelc.runtime.loading import load
from modelc.runtime.log_probability import TokenLogprob
from modelc.runtime.model import LanguageModel
from modelc.runtime.sampling import Sampling
from modelc.runtime.text_model import TextModel

__all__ = ["Chunk", "Generation", "LanguageModel", "LoadedModel", "Sampling", "TextModel", "TokenLogprob", "load"]
