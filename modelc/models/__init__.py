"""Architectures: each one file that reads like its paper, lowered to a Program."""

from modelc.models.registry import lower

__all__ = ["lower"]
