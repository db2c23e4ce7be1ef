"""Compute: SIMD values, tiles, opcodes and the executor. Knows nothing of files."""
