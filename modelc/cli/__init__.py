"""The `modelc` command."""

from modelc.cli.app import main

__all__ = ["main"]
