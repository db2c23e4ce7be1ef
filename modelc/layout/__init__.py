"""Kernel layout: how weights lie in memory for the kernels, and back; values of quantized blocks.

Importing this package is cheap: Numba is loaded, and a loop compiled, when a tensor is converted.
"""

from modelc.layout.convert import QUANTIZED_TYPES, dequantize, from_lanes, quantize, to_lanes
from modelc.layout.table import LANES, LAYOUT_VERSION, RECORD_BYTES, is_lanes, lanes_nbytes
from modelc.layout.tensors import dequantize_rows, float_rows, is_float, lanes_bytes, plain_bytes

__all__ = [
    "LANES",
    "LAYOUT_VERSION",
    "QUANTIZED_TYPES",
    "RECORD_BYTES",
    "dequantize",
    "dequantize_rows",
    "float_rows",
    "from_lanes",
    "is_float",
    "is_lanes",
    "lanes_bytes",
    "lanes_nbytes",
    "plain_bytes",
    "quantize",
    "to_lanes",
]
