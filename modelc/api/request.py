"""The request as handlers see it: the server's state and the decoded body are one call away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from litestar import Request

from modelc.api.fields import decode_fields
from modelc.errors import UnsupportedError

if TYPE_CHECKING:
    from modelc.api.state import ServerState
    from modelc.runtime import LoadedModel, TextModel

T = TypeVar("T")
FALLBACK_HEADER = "x-modelc-fallback"
COMPRESSIONS = frozenset({"gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress"})


class ApiRequest(Request[Any, Any, Any]):
    """A request to the API."""

    @property
    def server(self) -> ServerState:
        """What all requests share."""
        return cast("ServerState", self.app.state.server)

    @property
    def loaded(self) -> LoadedModel:
        """The loaded model, of whatever kind; BusyError while it loads."""
        return self.server.model

    @property
    def model(self) -> TextModel:
        """The loaded model, which can generate text.

        Raises:
            BusyError: It is still loading.
            UnsupportedError: It is of a kind that cannot; the message says what it can do.
        """
        return self.loaded.as_text_model()

    @property
    def fallback_headers(self) -> dict[str, str]:
        """What tells that the answer is not the model's own; nothing for a model that can be run."""
        fallback = self.loaded.fallback
        return {} if fallback is None else {FALLBACK_HEADER: fallback}

    async def decode(self, shape: type[T]) -> T:
        """Read the JSON body into `shape`, a struct.

        Raises:
            BadInputError: Not JSON, or a field of the wrong type or out of range (`param` names it).
            UnsupportedError: The body is compressed.
        """
        encoding = self.headers.get("content-encoding", "")
        if encoding.lower() in COMPRESSIONS:
            raise UnsupportedError("compressed bodies are not supported", got=encoding, hint="send it as it is")
        return decode_fields(await self.body(), shape)
