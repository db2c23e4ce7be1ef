"""How fast a model is on this machine: what `modelc bench` measures."""

from modelc.benchmark.benchmark import benchmark
from modelc.benchmark.samples import Plan, Result

__all__ = ["Plan", "Result", "benchmark"]
