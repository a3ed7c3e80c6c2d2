"""HTTP requests of export targets. Tested in tests/unit/observe/export/."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from noetl.observe.export.target import ExportError

if TYPE_CHECKING:
    from aiohttp import ClientSession

_TIMEOUT_S = 30
_CONNECTIONS = 8
_SHOWN = 300  # characters of an answer that refuses


class Poster:
    """Posts to one system; user and password of its URL go into a header or `auth`."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        parts = urlsplit(url)
        self.url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")
        self.user = unquote(parts.username or "")
        self.password = unquote(parts.password or "")
        self._headers = dict(headers or {})
        self._session: ClientSession | None = None

    async def post(
        self,
        path: str,
        data: bytes,
        *,
        kind: str = "application/json",
        params: Mapping[str, str] | None = None,
        method: str = "POST",
    ) -> bytes:
        """Send data and return the answer. Raises ExportError."""
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=_CONNECTIONS)
            timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        headers = {"Content-Type": kind, **self._headers}
        options: dict[str, Any] = {"data": data, "headers": headers, "params": params, "allow_redirects": False}
        try:
            async with self._session.request(method, self.url + path, **options) as answer:
                body = await answer.read()
        except TimeoutError:
            raise ExportError(f"{self.url} did not answer within {_TIMEOUT_S} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ExportError(f"{self.url}: {error}") from None
        if not 200 <= answer.status < 300:
            why = body[: 4 * _SHOWN].decode(errors="replace").strip()[:_SHOWN]
            raise ExportError(f"{self.url} answered {answer.status}: {why}")
        return body

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None
