"""Stands before every route: whose Host and Origin may call, how many at once, and the headers that every answer has.

A page of another site cannot call this server, also not through a name that it makes point here. Tested in
tests/server/test_guard.py.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noetl.server.problems import Refusal, answer
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
_ALLOWED_METHODS = "GET, POST, PUT, PATCH, DELETE"
_ALLOWED_HEADERS = "Authorization, Content-Type, Idempotency-Key, Last-Event-ID"
_ALWAYS = ("/health", "/ready")  # also answered when there is no room


class Guard:
    """An application around an application."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        try:
            self._check(scope, headers, origin)
        except Refusal as refusal:
            await _refuse(refusal, scope, receive, _with_headers(send, {}))
            return
        extra = self._cors(origin)
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and extra:
            preflight = {"Access-Control-Allow-Methods": _ALLOWED_METHODS, "Access-Control-Max-Age": "600"}
            preflight["Access-Control-Allow-Headers"] = _ALLOWED_HEADERS
            sending = _with_headers(send, {**extra, **preflight})
            await sending({"type": "http.response.start", "status": 204, "headers": []})
            await sending({"type": "http.response.body", "body": b""})
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, _with_headers(send, extra) if scope["type"] == "http" else send)
        finally:
            self._under_way -= 1

    def _check(self, scope: Scope, headers: Headers, origin: str | None) -> None:
        bounds = self._services.bounds
        host = headers.get("host", "")
        if bounds.hosts and _name(host) not in bounds.hosts:
            raise Refusal(
                421,
                "wrong-host",
                f"this server is not called {host or '(nothing)'}",
                where="header Host",
                fix="Use its own name, or start it with `--allow-host NAME`.",
            )
        if origin is not None and not _same(origin, host) and origin not in bounds.origins:
            raise Refusal(
                403,
                "wrong-origin",
                f"pages of {origin} may not call this server",
                where="header Origin",
                fix="Start it with `--allow-origin ORIGIN` if they may.",
            )
        if self._under_way >= bounds.most_requests and scope["path"] not in _ALWAYS:
            raise Refusal(503, "busy", "too many requests are under way", fix="Try again soon.", retry_after_s=1.0)

    def _cors(self, origin: str | None) -> dict[str, str]:
        if origin is None or origin not in self._services.bounds.origins:
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}


def _name(host: str) -> str:
    """Give the name in a Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _same(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False


def _with_headers(send: Send, extra: dict[str, str]) -> Send:
    wanted = [*_raw(extra), *(one for one in _RAW if one[0] not in dict(_raw(extra)))] if extra else _RAW
    ours = {name for name, _ in wanted} if extra else _NAMES

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            more = wanted if ours.isdisjoint(names) else [one for one in wanted if one[0] not in names]
            message["headers"] = given + more
        await send(message)

    return sending


def _raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]


_RAW = _raw(HEADERS)
_NAMES = {name for name, _ in _RAW}


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        message: dict[str, Any] = {"type": "websocket.close", "code": 1008, "reason": str(refusal)[:120]}
        await send(message)
        return
    await answer(refusal, scope["path"])(scope, receive, send)
