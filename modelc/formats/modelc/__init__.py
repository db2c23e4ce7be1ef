"""The `.modelc` file: one model, ready to run in place."""

from modelc.formats.modelc.compiled import is_compiled, is_compiled_file
from modelc.formats.modelc.header import Entry, Header
from modelc.formats.modelc.reader import read, read_header
from modelc.formats.modelc.verifier import verify
from modelc.formats.modelc.writer import Conversion, write

__all__ = ["Conversion", "Entry", "Header", "is_compiled", "is_compiled_file", "read", "read_header", "verify", "write"]
