"""ONNX graphs that run: execution plans over arrays, heavy operators on modelc's own kernels."""

from modelc.onnx.description import Description, describe
from modelc.onnx.kernel_names import KERNELS
from modelc.onnx.model import OnnxEncoder, OnnxModel, load_onnx

__all__ = ["KERNELS", "Description", "OnnxEncoder", "OnnxModel", "describe", "load_onnx"]
