"""The request as handlers see it: the server's state and the decoded body are one call away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from litestar import Request

from modelc.api.fields import decode_fields

if TYPE_CHECKING:
    from modelc.api.state import ServerState
    from modelc.runtime import LanguageModel

T = TypeVar("T")


class ApiRequest(Request[Any, Any, Any]):
    """A request to the API."""

    @property
    def server(self) -> ServerState:
        """What all requests share."""
        return cast("ServerState", self.app.state.server)

    @property
    def model(self) -> LanguageModel:
        """The loaded model; BusyError while it loads."""
        return self.server.model

    async def decode(self, shape: type[T]) -> T:
        """Read the JSON body into `shape`, a struct.

        Raises:
            BadInputError: Not JSON, or a field of the wrong type or out of range (`param` names it).
            UnsupportedError: A field asks for what this version does not do.
        """
        return decode_fields(await self.body(), shape)
