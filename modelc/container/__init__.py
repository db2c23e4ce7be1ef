"""Container images that serve a model: what `modelc containerize` writes."""

from modelc.container.context import Context, write_context

__all__ = ["Context", "write_context"]
