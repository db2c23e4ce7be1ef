"""The Program: a table of instructions over numbered buffers, and the builder that architectures write it with."""

from modelc.program.builder import Builder
from modelc.program.program import Buffer, LowRank, Program, Weight

__all__ = ["Buffer", "Builder", "LowRank", "Program", "Weight"]
