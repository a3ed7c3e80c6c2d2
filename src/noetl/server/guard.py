"""Stands before every route: whose Host and Origin may call, how many at once, and the headers that every answer has.

A page of another site cannot call this server, also not through a name that it makes point here. Routes are found and served
here; for what is none, and for sessions, there is an application behind. Tested in tests/server/test_guard.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noetl.server.connections import Head
from noetl.server.endpoint import Call, Endpoint, headers_of
from noetl.server.paths import Paths
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
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Max-Age": "600",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID",
}
_NOTHING: dict[str, str] = {}
_ALWAYS = ("/health", "/ready")  # also answered when there is no room


class Guard:
    """An application around an application, and around routes."""

    def __init__(self, app: ASGIApp, services: Services, endpoints: Iterable[Endpoint] = ()) -> None:
        self._app = app
        self._services = services
        self._under_way = 0
        self._host = b""  # the last one that was good
        self._paths = Paths((one.method, one.path, (one, _head(one))) for one in endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = headers_of(scope)
        try:
            extra = self._checked(scope["path"], headers)
        except Refusal as refusal:
            await _refuse(refusal, scope, receive, _with_headers(send, _NOTHING))
            return
        found = None if extra or kind == "websocket" else self._paths.find(scope["method"], scope["path"])
        self._under_way += 1
        try:
            if found is None:
                await self._pass_on(scope, receive, send, extra)
                return
            (endpoint, head), parameters = found
            made = await endpoint.answered(Call(scope, receive, self._services, headers, parameters))
            if isinstance(made, Response):
                await made(scope, receive, _with_headers(send, _NOTHING))
            elif not head.write(send, made):
                await head.send(send, made)
        finally:
            self._under_way -= 1

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, extra: dict[str, str]) -> None:
        """Let the application behind serve it; what a page of another origin asks before it calls is answered here."""
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
        elif not extra or scope["method"] != "OPTIONS":
            await self._app(scope, receive, _with_headers(send, extra))
        else:
            sending = _with_headers(send, {**extra, **_PREFLIGHT})
            await sending({"type": "http.response.start", "status": 204, "headers": []})
            await sending({"type": "http.response.body", "body": b""})

    def _checked(self, path: str, headers: dict[bytes, bytes]) -> dict[str, str]:
        """Give the headers for pages of another origin that may call; mostly none. Raises Refusal."""
        host, origin, bounds = headers.get(b"host", b""), headers.get(b"origin"), self._services.bounds
        if host != self._host or not host:
            _check_host(host.decode("latin-1"), bounds.hosts)
            self._host = host
        if self._under_way >= bounds.most_requests and path not in _ALWAYS:
            raise Refusal(503, "busy", "too many requests are under way", fix="Try again soon.", retry_after_s=1.0)
        if origin is None:
            return _NOTHING
        return _checked_origin(origin.decode("latin-1"), host.decode("latin-1"), bounds.origins)


def _check_host(host: str, hosts: Sequence[str]) -> None:
    if hosts and _name(host) not in hosts:
        raise Refusal(
            421,
            "wrong-host",
            f"this server is not called {host or '(nothing)'}",
            where="header Host",
            fix="Use its own name, or start it with `--allow-host NAME`.",
        )


def _checked_origin(origin: str, host: str, origins: Sequence[str]) -> dict[str, str]:
    if origin in origins:
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
    if _same(origin, host):
        return _NOTHING
    raise Refusal(
        403,
        "wrong-origin",
        f"pages of {origin} may not call this server",
        where="header Origin",
        fix="Start it with `--allow-origin ORIGIN` if they may.",
    )


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


def _head(endpoint: Endpoint) -> Head:
    """Give what the plain answers of a route begin with."""
    made = Response(None, endpoint.status, media_type=endpoint.gives)
    return Head(endpoint.status, [one for one in made.raw_headers if one[0] != b"content-length"] + _RAW)


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        message: dict[str, Any] = {"type": "websocket.close", "code": 1008, "reason": str(refusal)[:120]}
        await send(message)
        return
    await answer(refusal, scope["path"])(scope, receive, send)
