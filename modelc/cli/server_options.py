"""Options of commands that serve: who may ask, how often, how much."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from modelc.cli.options import parse_size
from modelc.errors import BadInputError, NotFoundError

if TYPE_CHECKING:
    from modelc.api.options import ServeOptions

ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@]+", re.IGNORECASE)  # what browsers send, and * for some of it


@Parameter(name="*", group="Clients")
@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What clients may do; None leaves the built-in choice."""

    api_key: Annotated[
        list[str] | None,
        Parameter(
            help="Key that clients must send, or @FILE with one in each line; repeatable. "
            "MODELC_API_KEY keeps it out of the process list.",
            negative="",
        ),
    ] = None
    rate_limit: Annotated[
        int | None, Parameter(help="Most requests per minute from one address.", validator=Number(gte=1))
    ] = None
    trusted_proxy: Annotated[
        list[str] | None,
        Parameter(
            help="Address or network of a proxy whose X-Forwarded-For or Forwarded tells the client; repeatable.",
            negative="",
        ),
    ] = None
    max_concurrent: Annotated[
        int | None, Parameter(help="Most requests answered at a time.", validator=Number(gte=1))
    ] = None
    max_body: Annotated[str | None, Parameter(help="Largest request body, like 4MiB. [default: 16MiB]")] = None
    cors: Annotated[
        list[str] | None,
        Parameter(
            help="Origin whose pages may call the server, like https://chat.example; repeatable. "
            "none: no other pages. [default: *, all]",
            negative="",
        ),
    ] = None
    adapters: Annotated[
        Path | None, Parameter(help="Folder of LoRA adapters: requests may load these, and no others.")
    ] = None
    lenient_grammar: Annotated[
        bool, Parameter(negative="", help="Ignore grammars and schemas that cannot be followed, instead of refusing.")
    ] = False
    access_log: Annotated[
        Literal["json", "text"] | None,
        Parameter(help="Write a line for each request to standard output. [default: none]"),
    ] = None

    def serve_options(self, bind: str, port: int, api_key: str | None, defaults: Mapping[str, Any]) -> ServeOptions:
        """Return what the server takes.

        Args:
            bind: Address to listen on.
            port: TCP port.
            api_key: The configured key, for want of one on the command line.
            defaults: Sampling fields where requests leave them out.

        Raises:
            BadInputError: A value that cannot be.
            NotFoundError: A file of keys, or the folder of adapters, does not exist.
        """
        from modelc.api.clients import parse_networks
        from modelc.api.keys import read_keys
        from modelc.api.options import MIB, ServeOptions

        if self.adapters is not None and not self.adapters.is_dir():
            raise NotFoundError("no such folder of adapters", path=self.adapters)
        return ServeOptions(
            bind=bind,
            port=port,
            api_keys=read_keys(self.api_key or ([api_key] if api_key else [])),
            rate_limit=self.rate_limit,
            trusted_proxies=parse_networks(self.trusted_proxy or ()),
            max_concurrent=self.max_concurrent,
            max_body_bytes=16 * MIB if self.max_body is None else parse_size(self.max_body, "--max-body"),
            cors_origins=_cors_origins(self.cors),
            adapters=self.adapters,
            lenient_grammar=self.lenient_grammar,
            access_log=self.access_log,
            defaults=defaults,
        )


NO_LIMITS = ServerOptions()


def _cors_origins(given: list[str] | None) -> tuple[str, ...]:
    if not given:
        return ("*",)
    if "none" in given and len(given) > 1:
        raise BadInputError("none stands alone", param="--cors", got=" ".join(given), expected="none, or origins")
    if given == ["none"]:
        return ()
    for origin in given:
        if origin not in ("*", "null") and not ORIGIN.fullmatch(origin):  # browsers send null for pages of files
            expected = "a scheme and a host like https://chat.example, without a path"
            raise BadInputError("not an origin", param="--cors", got=repr(origin), expected=expected)
    return tuple(origin.lower() for origin in given)  # as browsers write them
