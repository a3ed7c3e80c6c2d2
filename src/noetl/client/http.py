"""Typed HTTP requests to one of several servers, and their errors.

A request that was never sent fails over to the next server. One that may have arrived is retried only with `patience_s`,
which callers set for idempotent requests. Tested in tests/client/test_session.py and test_api.py.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar
from urllib.request import getproxies

import httpx
import msgspec

from noetl.client.local_server import LocalServer, local_server
from noetl.model.errors import (
    BadReference,
    Conflict,
    Denied,
    InvalidInput,
    InvalidPayload,
    InvalidPlaybook,
    NoetlError,
    StoreUnavailable,
    UnknownExecution,
    Unreachable,
)
from noetl.wire.problem import Problem

Given = TypeVar("Given")
_CONNECT_S = 5.0
_ANSWER_S = 60.0
_AGAIN_S = (0.05, 0.1, 0.2, 0.5, 1.0)
_JSON = {"Content-Type": "application/json"}
_WORDS: dict[str, type[NoetlError]] = {
    "invalid-playbook": InvalidPlaybook,
    "invalid-payload": InvalidPayload,
    "unknown-execution": UnknownExecution,
    "bad-reference": BadReference,
    "ended": InvalidInput,
    "unknown-worker": Unreachable,
}
_STATUSES: dict[int, type[NoetlError]] = {
    401: Denied,
    403: Denied,
    404: InvalidInput,
    408: Unreachable,  # the request did not arrive whole in time, or a frozen server had not read it
    409: Conflict,
    429: StoreUnavailable,
    500: NoetlError,
    502: Unreachable,
    503: StoreUnavailable,
    504: Unreachable,
}
_MOST_SHOWN = 20  # diagnostics of one playbook


class Servers:
    """Addresses of servers that share a store; one is current."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = [normalize_url(url) for url in urls]
        if not self._urls:
            raise InvalidInput("No server is configured. Set `--server URL` or NOETL_SERVER_URL.")
        self._at = 0

    def __len__(self) -> int:
        return len(self._urls)

    @property
    def url(self) -> str:
        """The current server."""
        return self._urls[self._at]

    @property
    def have_tls(self) -> bool:
        """Whether any of them, or a proxy on the way, has a certificate."""
        return any(url.lower().startswith("https:") for url in (*self._urls, *getproxies().values()))

    def turn(self, away_from: str) -> None:
        """Switch to the next server, unless another request has switched already."""
        if away_from == self.url:
            self._at = (self._at + 1) % len(self._urls)


def normalize_url(url: str) -> str:
    """Return the address of a server without a trailing slash. Raises InvalidInput."""
    text = url.strip().rstrip("/")
    try:
        found = httpx.URL(text)
    except httpx.InvalidURL:
        found = httpx.URL("")
    if found.scheme not in ("http", "https") or not found.host:
        raise InvalidInput(f"`{url}` is not the address of a server. Write it as http://HOST:8082.")
    return text


class _Client(httpx.AsyncClient):
    async def send(self, request: httpx.Request, **more: Any) -> httpx.Response:
        try:
            return await super().send(request, **more)
        except AttributeError as error:  # reset as it opened: the library asks for the socket, and uvloop has none
            raise httpx.ConnectError("the connection was reset as it opened", request=request) from error


class Http:
    """HTTP client with failover between servers."""

    def __init__(self, servers: Servers, token: str | None = None, *, patience_s: float = 0.0) -> None:
        self.servers = servers
        self._patience_s = patience_s
        self._token = token
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=16)
        time = httpx.Timeout(_ANSWER_S, connect=_CONNECT_S)
        if token is not None and not token.isascii():
            raise InvalidInput("The token holds invalid characters. Check NOETL_TOKEN or `--token`.")
        # Certificates take 50 ms to read. Without any, TLS is refused.
        verify = True if servers.have_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._client = _Client(timeout=time, limits=limits, verify=verify)

    async def close(self) -> None:
        await self._client.aclose()

    def reach(self) -> LocalServer:
        """Return address and token of the current server; a given token comes first."""
        url = self.servers.url
        return LocalServer(url, self._token) if self._token else local_server(url)

    async def ask(self, method: str, path: str, gives: type[Given], body: Any = None, **more: Any) -> Given:
        """Send a request with a JSON body and decode the answer."""
        content = None if body is None else msgspec.json.encode(body)
        answer = await self.send(method, path, content, **more)
        try:
            return msgspec.json.decode(answer.content, type=gives)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise NoetlError(
                f"{self.servers.url} sent an answer that this version cannot read: {error}. "
                "Use the same version of client and server."
            ) from None

    async def send(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request and return its successful answer. Raises the error of any other."""
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
                to, answer = await self._request(method, path, content, query, sent)
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
        problem = _refused(problem_in(answer.content, answer.status_code), to)
        if isinstance(problem, Unreachable):  # a proxy without a server, or a server that does not know the worker
            self.servers.turn(url)
        raise problem

    async def _request(
        self, method: str, path: str, content: bytes | None, query: Any, headers: Mapping[str, str]
    ) -> tuple[LocalServer, httpx.Response]:
        """Send a request; again if the server was restarted since its token was read."""
        while True:
            to = self.reach()
            sent = {**headers, **bearer(to.token)}
            answer = await self._client.request(method, to.url + path, content=content, params=query, headers=sent)
            if answer.status_code != 401 or self.reach() == to:
                return to, answer

    @asynccontextmanager
    async def stream(self, path: str, query: Any, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """Open a stream of server-sent events."""
        url, to = self.servers.url, self.reach()
        asked = {**headers, **bearer(to.token)}
        try:
            async with self._client.stream("GET", to.url + path, params=query, headers=asked) as answer:
                if not answer.is_success:
                    raise _refused(problem_in(await answer.aread(), answer.status_code), to)
                yield answer
        except httpx.HTTPError as error:
            self.servers.turn(url)
            raise (away(self.servers) if isinstance(error, httpx.ConnectError) else cut(url, error)) from None


def bearer(token: str | None) -> dict[str, str]:
    """Return the header that carries a token."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def _refused(problem: Problem, to: LocalServer) -> NoetlError:
    """Return the error of a problem; of a token from a file, with where it is from."""
    error = error_of(problem)
    if problem.status != 401 or to.file is None:
        return error
    return Denied(
        f"{error} The token was read from {to.file}, so the server at {to.url} is not the one that wrote it. "
        "Check the port, or give a token with NOETL_TOKEN."
    )


def away(servers: Servers) -> Unreachable:
    return Unreachable(
        f"The server {servers.url} cannot be reached. Check that it is running (`noetl serve`, `noetl up`) and its address."
    )


def cut(url: str, error: Exception) -> Unreachable:
    return Unreachable(f"The connection to {url} was lost: {str(error) or type(error).__name__}.")


def word_of(problem: Problem) -> str:
    """Return the last word of a problem's type."""
    return problem.type.partition("#")[2]


def error_of(problem: Problem) -> NoetlError:
    """Return the error of a problem."""
    default = InvalidInput if 400 <= problem.status < 500 else NoetlError
    kind = _WORDS.get(word_of(problem)) or _STATUSES.get(problem.status, default)
    return kind(sentences(problem))


def sentences(problem: Problem) -> str:
    """Format a problem: what happened, where, what to do, and its diagnostics."""
    where = f" ({problem.where})" if problem.where and problem.where != "$" else ""
    text = _with_period(problem.detail or problem.title, where)
    if problem.fix:
        text += f" {_with_period(problem.fix)}"
    lines = [_diagnostic(one) for one in problem.errors[:_MOST_SHOWN]]
    if len(problem.errors) > _MOST_SHOWN:
        lines.append(f"… and {len(problem.errors) - _MOST_SHOWN} more")
    return "\n  ".join((text, *lines))


def problem_in(body: bytes, status: int) -> Problem:
    """Decode the problem of an answer; a proxy may have answered something else."""
    try:
        return msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, msgspec.ValidationError):
        text = body[:200].decode(errors="replace").strip()
        return Problem("about:blank#other", f"HTTP {status}", status, f"The server answered {status}: {text}")


def _with_period(text: str, more: str = "") -> str:
    text = text.strip()
    if not more and text.endswith("?"):
        return text
    return f"{text.removesuffix('.')}{more}."


def _diagnostic(given: Any) -> str:
    if not isinstance(given, dict) or "message" not in given:
        return str(given)
    if "line" not in given:
        return str(given["message"])
    place = f"{given.get('line', 0)}:{given.get('column', 0)}"
    return f"{place} {given.get('severity', 'error')} {given.get('code', '')}: {given['message']}"
