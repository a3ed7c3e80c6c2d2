"""Requests to one of the servers that may be asked, with a token, in types.

A request that never left is sent to the next server; one that may have arrived is sent again only by those who know that it
is harmless (`patience_s`). Tested in tests/client/test_session.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
import msgspec

from noetl.client.problems import error_of, problem_in
from noetl.model.errors import InvalidInput, NoetlError, StoreUnavailable, Unreachable

Given = TypeVar("Given")
_CONNECT_S = 5.0
_ANSWER_S = 60.0
_AGAIN_S = (0.05, 0.1, 0.2, 0.5, 1.0)
_JSON = {"Content-Type": "application/json"}


class Servers:
    """Addresses of servers on one store; all are asked the same way, one at a time."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = [checked(url) for url in urls]
        if not self._urls:
            raise InvalidInput("no server is named: `--server URL` or NOETL_SERVER_URL does.")
        self._at = 0

    def __len__(self) -> int:
        return len(self._urls)

    @property
    def url(self) -> str:
        """The one that is asked now."""
        return self._urls[self._at]

    def turn(self, away_from: str) -> None:
        """Ask the next one, unless somebody has turned already."""
        if away_from == self.url:
            self._at = (self._at + 1) % len(self._urls)


def checked(url: str) -> str:
    """Give the address of a server without a slash at its end. Raises InvalidInput."""
    text = url.strip().rstrip("/")
    try:
        found = httpx.URL(text)
    except httpx.InvalidURL:
        found = httpx.URL("")
    if found.scheme not in ("http", "https") or not found.host:
        raise InvalidInput(f"`{url}` is no address of a server; write http://HOST:8082.")
    return text


class Http:
    """A pool of connections to the servers."""

    def __init__(self, servers: Servers, token: str | None = None, *, patience_s: float = 0.0) -> None:
        self.servers = servers
        self._patience_s = patience_s
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
        time = httpx.Timeout(_ANSWER_S, connect=_CONNECT_S)
        try:
            self._client = httpx.AsyncClient(headers=headers, timeout=time, limits=limits)
        except UnicodeEncodeError:
            raise InvalidInput("the token holds characters that no token has.") from None

    async def close(self) -> None:
        await self._client.aclose()

    async def ask(self, method: str, path: str, gives: type[Given], body: Any = None, **more: Any) -> Given:
        """Send a request with a JSON body and give its answer as what it must be."""
        content = None if body is None else msgspec.json.encode(body)
        answer = await self.send(method, path, content, **more)
        try:
            return msgspec.json.decode(answer.content, type=gives)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise NoetlError(f"{self.servers.url} answers what this version does not know: {error}") from None

    async def send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request; its answer is a success. Raises the error that it was answered with."""
        until = asyncio.get_running_loop().time() + self._patience_s
        tries = 0
        while True:
            try:
                return await self._once(method, path, content, query, headers)
            except StoreUnavailable:
                wait_s = _AGAIN_S[min(tries, len(_AGAIN_S) - 1)]
                if asyncio.get_running_loop().time() + wait_s > until:
                    raise
                await asyncio.sleep(wait_s)
                tries += 1

    async def _once(
        self, method: str, path: str, content: bytes | None, query: Any, headers: Mapping[str, str] | None
    ) -> httpx.Response:
        sent = {**(_JSON if content is not None else {}), **(headers or {})}
        for _ in range(len(self.servers)):
            url = self.servers.url
            try:
                answer = await self._client.request(method, url + path, content=content, params=query, headers=sent)
                break
            except (httpx.ConnectError, httpx.ConnectTimeout):
                self.servers.turn(url)
            except httpx.HTTPError as error:
                self.servers.turn(url)
                raise cut(url, error) from None
        else:
            raise away(self.servers)
        if answer.is_success:
            return answer
        problem = error_of(problem_in(answer.content, answer.status_code))
        if isinstance(problem, Unreachable):  # nobody is behind it, or it does not know who asks: another one may
            self.servers.turn(url)
        raise problem

    @asynccontextmanager
    async def stream(self, path: str, query: Any, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """Open a stream that may be silent for a while."""
        url = self.servers.url
        try:
            async with self._client.stream("GET", url + path, params=query, headers=dict(headers)) as answer:
                if not answer.is_success:
                    raise error_of(problem_in(await answer.aread(), answer.status_code))
                yield answer
        except httpx.HTTPError as error:
            self.servers.turn(url)
            raise (away(self.servers) if isinstance(error, httpx.ConnectError) else cut(url, error)) from None


def away(servers: Servers) -> Unreachable:
    """Say that nobody answers."""
    return Unreachable(
        f"the server {servers.url} cannot be reached. Is it running (`noetl serve`, `noetl up`), and is this its address?"
    )


def cut(url: str, error: Exception) -> Unreachable:
    return Unreachable(f"the connection to {url} was lost: {str(error) or type(error).__name__}.")
