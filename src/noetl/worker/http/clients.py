"""HTTP clients of a worker, one for each way to verify certificates.

Tasks share them. Nothing of one request remains for the next: no cookies, and no header of a task that follows a redirect
to another host, port or scheme. The egress rules see every host: names where they are resolved, addresses before each
request. Tested in tests/tools/test_http.py and tests/unit/worker/http.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Final

from noetl.ports.web import WebClient, WebError, WebRequest, WebResponse, basic
from noetl.worker.http.egress import Egress

if TYPE_CHECKING:  # most runs do not use HTTP
    import aiohttp
    from yarl import URL

# All that follows a redirect to another origin; any other header of a task may hold a secret.
_FOLLOWING: Final = frozenset(
    ("host", "accept", "accept-encoding", "accept-language", "connection", "user-agent", "content-length",
     "content-type", "idempotency-key", "transfer-encoding")
)  # fmt: skip
_OF_BODY: Final = frozenset(("content-length", "content-type", "transfer-encoding", "content-encoding"))
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_MOST_REDIRECTS: Final = 20
_IDLE_S: Final = 5.0  # a connection without a request is kept for this long
_MOST_HEADER: Final = 64 * 1024  # bytes of one header


class HttpClient:
    """The clients, each created on first use."""

    def __init__(self, egress: Egress | None = None) -> None:
        self._egress = egress or Egress()
        self._clients: dict[bool | bytes, _Client] = {}

    def get(self, verify: bool | bytes = True) -> WebClient:
        """Return the client that trusts the usual certificates, these, or any.

        Raises OSError if these are no certificates.
        """
        if verify not in self._clients:
            self._clients[verify] = _Client(self._egress, _given(verify) if isinstance(verify, bytes) else verify)
        return self._clients[verify]

    async def close(self) -> None:
        clients, self._clients = list(self._clients.values()), {}
        for client in clients:
            await client.close()


def _given(certificates: bytes) -> ssl.SSLContext:
    text = certificates.decode("ascii", "ignore")
    if not text.strip():
        raise OSError("the file is empty")  # the usual certificates would be trusted
    return ssl.create_default_context(cadata=text)


def _certificates(verify: bool) -> ssl.SSLContext:
    if verify:
        return _usual(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@cache
def _usual(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Read the certificates of the environment or of certifi, once for all clients."""
    if file or folder:
        return ssl.create_default_context()
    import certifi

    return ssl.create_default_context(cafile=certifi.where())


def _load(verify: bool | ssl.SSLContext) -> ssl.SSLContext:
    """Load aiohttp and the certificates: for a thread, as it takes long."""
    import aiohttp  # noqa: F401

    context = _certificates(verify) if isinstance(verify, bool) else verify
    context.set_alpn_protocols(("http/1.1",))
    return context


class _Client:
    """A client of aiohttp, opened by its first request."""

    def __init__(self, rules: Egress, verify: bool | ssl.SSLContext) -> None:
        self._rules = rules
        self._verify = verify
        # The rules cannot see the hosts behind a proxy.
        self._proxies = _proxies() if rules.is_open else {}
        self._opening = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    async def _open(self) -> aiohttp.ClientSession:
        async with self._opening:
            if self._session is None:
                self._session = self._made(await asyncio.to_thread(_load, self._verify))
            return self._session

    def _made(self, certificates: ssl.SSLContext) -> aiohttp.ClientSession:
        import aiohttp

        from noetl import __version__
        from noetl.worker.http.resolver import EgressResolver

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,  # a task that waits for a connection would time out for nothing
                keepalive_timeout=_IDLE_S,
                ssl=certificates,
                resolver=EgressResolver(self._rules),
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": f"noetl/{__version__}"},
            skip_auto_headers=("Content-Type",),
            max_line_size=_MOST_HEADER,
            max_field_size=_MOST_HEADER,
            middlewares=(_once,),
        )

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def send(self, request: WebRequest) -> AsyncIterator[WebResponse]:
        session = self._session or await self._open()
        began = perf_counter()
        url, headers = _target(request)
        response = await self._follow(session, request, url, headers)
        try:
            yield _Response(response, began)
        finally:
            response.release()  # a connection with the rest of a body is closed

    async def _follow(
        self, session: aiohttp.ClientSession, request: WebRequest, url: URL, headers: dict[str, str]
    ) -> aiohttp.ClientResponse:
        """Send a request, and where its redirects lead."""
        method, content = request.method, request.content
        for _ in range(_MOST_REDIRECTS + 1):
            response = await self._send(session, request, method, url, headers, content)
            if not request.follows or response.status not in _REDIRECTS or "Location" not in response.headers:
                return response
            response.release()
            before, url = url, _location(method, url, response.headers["Location"])
            if url.origin() != before.origin():
                headers = {name: value for name, value in headers.items() if name.lower() in _FOLLOWING}
            if _becomes_get(response.status, method):
                method, content = "GET", None
                headers = {name: value for name, value in headers.items() if name.lower() not in _OF_BODY}
        reason = f"it was redirected more than {_MOST_REDIRECTS} times"
        raise WebError("TooManyRedirects", reason, method=method, url=str(url), sent=True)

    async def _send(
        self,
        session: aiohttp.ClientSession,
        request: WebRequest,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        content: bytes | None,
    ) -> aiohttp.ClientResponse:
        import aiohttp

        self._rules.check_address(url.host or "")
        timeout = aiohttp.ClientTimeout(total=None, connect=request.connect_s, sock_read=request.read_s)
        try:
            return await session.request(
                method,
                url,
                headers=headers,
                data=content,
                allow_redirects=False,
                timeout=timeout,
                proxy=self._proxy(url) if self._proxies else None,
            )
        except (_LostError, aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unanswered(error, method, url) from error

    def _proxy(self, url: URL) -> str | None:
        from urllib.request import proxy_bypass

        if proxy_bypass(url.host or "", self._proxies):
            return None
        return self._proxies.get(url.scheme) or self._proxies.get("all")


class _LostError(Exception):
    """A request that was not answered; its cause says why."""


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request once; only the task's policy repeats it, never aiohttp."""
    import aiohttp

    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _LostError from error


def _proxies() -> dict[str, str]:
    from urllib.request import getproxies_environment

    found = getproxies_environment()
    return {name: url if "://" in url or name == "no" else f"http://{url}" for name, url in found.items()}


class _Response:
    """A response of aiohttp."""

    def __init__(self, response: aiohttp.ClientResponse, began: float) -> None:
        self._response = response
        self._began = began
        self.method = response.method
        self.url = str(response.url.with_fragment(None))
        self.status = response.status
        self.reason = response.reason or ""
        headers: dict[str, str] = {}
        for given, value in response.headers.items():
            name = given.lower()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self.headers = headers

    @property
    def elapsed(self) -> float:
        return perf_counter() - self._began

    async def parts(self) -> AsyncIterator[bytes]:
        import aiohttp

        try:
            async for part in self._response.content.iter_any():
                yield part
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unanswered(error, self.method, self._response.url) from error

    async def read(self, most: int) -> bytes | None:
        declared = self.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > most:
            return None
        content = bytearray()
        async for part in self.parts():
            content += part
            if len(content) > most:
                return None
        return bytes(content)


def _target(request: WebRequest) -> tuple[URL, dict[str, str]]:
    """Return URL and headers of a request; a user in the URL becomes a header."""
    from noetl.worker.http.urls import parsed

    url = parsed(request.url)
    if request.params:
        url = url.update_query(request.params)
    headers = dict(request.headers)
    if url.user is not None or url.password is not None:
        if not any(name.lower() == "authorization" for name in headers):
            headers["Authorization"] = basic(url.user or "", url.password or "")
        url = url.with_user(None)
    return url, headers


def _location(method: str, url: URL, location: str) -> URL:
    """Return where a redirect leads."""
    from noetl.worker.http.urls import parsed

    try:
        return parsed(location, url).with_user(None)
    except ValueError as error:
        reason = f"it was redirected to what is no URL: {error}"
        raise WebError("RemoteProtocolError", reason, method=method, url=str(url), sent=True) from None


def _becomes_get(status: int, method: str) -> bool:
    return (status == 303 and method != "HEAD") or (status in (301, 302) and method == "POST")


def _unanswered(error: BaseException, method: str, url: URL) -> BaseException:
    """Return what to raise for a request that has no complete response."""
    import aiohttp

    error = error.__cause__ or error if isinstance(error, _LostError) else error
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, PermissionError) and cause.errno is None:
        return cause  # of the egress rules
    if isinstance(error, aiohttp.InvalidURL):
        return ValueError(f"{url.host} {error.description}" if error.description else str(error))
    name, sent = "ReadError", True
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        name, sent = "ConnectTimeout", False
    elif isinstance(error, TimeoutError):
        name = "ReadTimeout"
    elif isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientProxyConnectionError):
        name, sent = "ConnectError", False
    elif isinstance(error, aiohttp.ContentTypeError | aiohttp.ClientPayloadError):
        name = "DecodingError" if "decode" in str(error) else "RemoteProtocolError"
    elif isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientResponseError):
        name = "RemoteProtocolError"
    return WebError(name, _reason(error, cause, url), method=method, url=str(url), sent=sent)


def _reason(error: BaseException, cause: BaseException, url: URL) -> str:
    """Return why a request has no response: the system's reason, if it has one."""
    if isinstance(cause, socket.gaierror):
        return f"cannot resolve the host name {url.host}: {cause.strerror}"
    if isinstance(cause, OSError) and cause.errno and not isinstance(cause, ssl.SSLError | ssl.CertificateError):
        return os.strerror(cause.errno)
    return str(cause) or str(error) or type(error).__name__
