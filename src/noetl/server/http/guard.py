"""ASGI middleware: Host, Origin, number of requests, security headers.

A page of another site cannot call this server, not even through a DNS name that it points here (DNS rebinding). Tested in
tests/server/http/test_guard.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noetl.server.http.endpoint import headers_of
from noetl.server.problems import Refusal, problem_response
from noetl.server.services import Services

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Max-Age": "600",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-CSRF-Token",
}
_NO_HEADERS: dict[str, str] = {}
_ALWAYS = ("/health", "/ready")  # answered even when the server is at its limit


class Guard:
    """ASGI middleware; the route table is behind it."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        self._active = 0
        self._host = b""  # the last one that was accepted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        try:
            extra = self._check(scope["path"], headers_of(scope))
        except Refusal as refusal:
            await _refuse(refusal, scope, receive, send)
            return
        if kind == "websocket":  # the bound of connections is its bound
            await self._app(scope, receive, send)
            return
        self._active += 1
        try:
            if extra and scope["method"] == "OPTIONS":
                await _answer_preflight(_with_headers(send, {**extra, **_PREFLIGHT}))
            else:
                await self._app(scope, receive, _with_headers(send, extra))
        finally:
            self._active -= 1

    def _check(self, path: str, headers: dict[bytes, bytes]) -> dict[str, str]:
        """Return the CORS headers of the answer; mostly none. Raises Refusal."""
        host, origin, bounds = headers.get(b"host", b""), headers.get(b"origin"), self._services.bounds
        if host != self._host or not host:
            _check_host(host.decode("latin-1"), bounds.hosts)
            self._host = host
        if self._active >= bounds.most_requests and path not in _ALWAYS:
            raise Refusal(503, "busy", "Too many requests are active.", fix="Try again soon.", retry_after_s=1.0)
        if origin is None:
            return _NO_HEADERS
        return _check_origin(origin.decode("latin-1"), host.decode("latin-1"), bounds.origins)


def _check_host(host: str, hosts: Sequence[str]) -> None:
    if hosts and _host_name(host) not in hosts:
        raise Refusal(
            421,
            "wrong-host",
            f"This server does not accept the host name {host or '(empty)'}.",
            where="header Host",
            fix="Use the server's own name, or start it with NOETL_ALLOWED_HOSTS=NAME.",
        )


def _check_origin(origin: str, host: str, origins: Sequence[str]) -> dict[str, str]:
    if origin in origins:
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    if _is_same_origin(origin, host):
        return _NO_HEADERS
    raise Refusal(
        403,
        "wrong-origin",
        f"Pages of {origin} may not call this server.",
        where="header Origin",
        fix="To allow them, start the server with NOETL_ALLOWED_ORIGINS=ORIGIN.",
    )


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _is_same_origin(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def _raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


_RAW = _raw(HEADERS)


def _with_headers(send: Send, extra: dict[str, str]) -> Send:
    """Return a `send` that adds headers which the answer has not set."""
    wanted = [*_raw(extra), *_RAW] if extra else _RAW

    def add_headers(message: Message) -> Awaitable[None]:
        if message["type"] == "http.response.start":
            headers = message["headers"] = list(message.get("headers", ()))
            names = {name for name, _ in headers}
            headers += [one for one in wanted if one[0] not in names]
        return send(message)

    return add_headers


async def _answer_preflight(send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        message: dict[str, Any] = {"type": "websocket.close", "code": 1008, "reason": str(refusal)[:120]}
        await send(message)
        return
    await problem_response(refusal, scope["path"])(scope, receive, _with_headers(send, _NO_HEADERS))
