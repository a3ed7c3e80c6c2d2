"""HTTP for tools: a request, its response, and why there is none.

A worker implements it in `worker/http/clients.py`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

CONNECT_S = 10.0  # default: an unresponsive host fails soon


class WebRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request; parameters replace those of the same name in the URL."""

    url: str
    method: str = "GET"
    params: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = {}
    content: bytes | None = None
    connect_s: float = CONNECT_S
    read_s: float | None = None  # without a byte of the response
    follows: bool = True  # redirects


class WebResponse(Protocol):
    """A response whose headers have arrived."""

    @property
    def method(self) -> str: ...

    @property
    def url(self) -> str:
        """URL after redirects, without user, password and fragment."""

    @property
    def status(self) -> int: ...

    @property
    def reason(self) -> str: ...

    @property
    def headers(self) -> dict[str, str]:
        """Headers, names in lower case."""

    @property
    def elapsed(self) -> float:
        """Seconds since the request was sent."""

    def parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, decompressed. Raises WebError."""

    async def read(self, most: int) -> bytes | None:
        """Return the body; None if it is longer than `most` bytes. Raises WebError."""


class WebError(Exception):
    """A request without a complete response."""

    def __init__(self, name: str, reason: str, *, method: str, url: str, sent: bool) -> None:
        super().__init__(reason)
        self.name = name  # such as ConnectError, ReadTimeout
        self.method = method
        self.url = url
        self.sent = sent  # the server may have acted

    @property
    def timed_out(self) -> bool:
        return self.name.endswith("Timeout")


def basic(user: str, password: str) -> str:
    """Return the header `Authorization` of a user with a password."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


class WebClient(Protocol):
    """Sends requests, to hosts that the egress rules allow."""

    def send(self, request: WebRequest) -> AbstractAsyncContextManager[WebResponse]:
        """Send a request and follow its redirects.

        Raises ValueError for what is no request, PermissionError if the rules deny it, and WebError.
        """
