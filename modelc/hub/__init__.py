"""Models from other machines: the Hugging Face hub, web servers, package indexes, Ollama's registry."""

from modelc.hub.huggingface import HubModel, search
from modelc.hub.pulling import pull
from modelc.hub.source import Wish

__all__ = ["HubModel", "Wish", "pull", "search"]
