"""Readers and writers of model files."""

from modelc.formats import modelc
from modelc.formats.folder import files_of
from modelc.formats.progress import Progress
from modelc.formats.registry import FORMATS, Format, detect, open_model

__all__ = ["FORMATS", "Format", "Progress", "detect", "files_of", "modelc", "open_model"]
