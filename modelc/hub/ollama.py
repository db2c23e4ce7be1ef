"""Models in the registry of Ollama: `name`, `name:tag`, `user/name:tag`, or `host/user/name:tag`."""

from __future__ import annotations

import re

from modelc.errors import BadInputError, NetworkError, NotFoundError, UnsupportedError
from modelc.hub.client import Client
from modelc.hub.remote import Offer, RemoteFile

REGISTRY = "https://registry.ollama.ai"
MODEL = "application/vnd.ollama.image.model"
ADAPTER = "application/vnd.ollama.image.adapter"
MANIFESTS = "application/vnd.docker.distribution.manifest.v2+json, application/vnd.oci.image.manifest.v1+json"
NAME = re.compile(
    r"(?:(?P<host>https?://[^/]+|[^/]+\.[^/]+|localhost(?::\d+)?)/)?(?:(?P<user>[\w.-]+)/)?"
    r"(?P<name>[\w.-]+)(?::(?P<tag>[\w.-]+))?",
    re.ASCII,
)
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def offer(client: Client, reference: str, tag: str | None) -> Offer:
    """What the registry has under `reference`.

    Args:
        client: for the requests.
        reference: the name, as Ollama writes it.
        tag: instead of the one in `reference`.

    Raises:
        BadInputError: not a name.
        ModelcError: no such model, or one without weights of its own.
    """
    parts = NAME.fullmatch(reference)
    if parts is None:
        raise BadInputError("not a name in Ollama's registry", got=repr(reference), expected="ollama:NAME:TAG")
    host = parts["host"] or REGISTRY
    base = host if host.startswith("http") else f"https://{host}"
    tag = tag or parts["tag"] or "latest"
    place = f"{base}/v2/{parts['user'] or 'library'}/{parts['name']}"
    where = f"{place}/manifests/{tag}"
    try:
        manifest, _ = client.get_json(where, {"Accept": MANIFESTS})
    except NotFoundError:
        hint = "check the name and the tag"
        raise NotFoundError("no such model in the registry", path=where, hint=hint) from None
    layers = manifest.get("layers") if isinstance(manifest, dict) else None
    if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
        raise NetworkError("the registry's answer has another form than expected", path=where)
    if any(layer.get("mediaType") == ADAPTER for layer in layers):
        raise UnsupportedError("the model is an adapter of another one", path=where, hint="pull that one")
    models = [layer for layer in layers if layer.get("mediaType") == MODEL]
    if len(models) != 1:
        raise UnsupportedError("no model in one file", path=where, expected="1 model layer", got=len(models))
    digest, size = models[0].get("digest"), models[0].get("size")
    if not isinstance(digest, str) or not DIGEST.fullmatch(digest) or not isinstance(size, int):
        raise NetworkError("the registry's answer has another form than expected", path=where)
    name = f"{parts['name']}.gguf"
    file = RemoteFile(name, f"{place}/blobs/{digest}", size, digest)
    called = parts["name"] if tag == "latest" else f"{parts['name']}-{tag}"
    return Offer(called, (file,), name, f"{parts['name']}:{tag}")
