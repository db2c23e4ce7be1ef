"""`GET /`: the chat page, one HTML file that loads nothing else."""

from __future__ import annotations

import functools
import pkgutil

from litestar import HttpMethod, route
from litestar.response.base import ASGIResponse
from litestar.types import ASGIApp

PAGE_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cache-control": "no-cache",
}


@route("/", http_method=[HttpMethod.GET, HttpMethod.HEAD], opt={"media": "text/html"})
async def page() -> ASGIApp:
    """Show a page to chat with the model."""
    return ASGIResponse(body=_html(), headers=PAGE_HEADERS)


@functools.cache
def _html() -> bytes:
    return pkgutil.get_data("modelc.api", "page.html") or b""
