"""Nonsensical bodies made from valid ones, and the quickest way to send them.

A body is changed as data (a value of another kind, a field too many or too few, nonsense that is too long, too deep or too
large) or as bytes. The same seed gives the same bodies.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from urllib.parse import quote, unquote

from starlette.types import ASGIApp

Answered = tuple[int, dict[str, str], bytes]
NASTY: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 10**30, 0.0, -0.0, 1e308, -1e-308, 1.5, "", " ",
    "x" * 5_000, "\x00", "\ud800", "\uffff", "é" * 300, "💥", "{{ 1 // 0 }}", "{{ x.y.z }}", "{% for i in range(9**9) %}{% endfor %}",
    "{{", "'; DROP TABLE event_log; --", "../../etc/passwd", "noetl://execution/1/step/x", "1:x#1", "last", "%00", "a/b", "a.b.c",
    "ctx.x", "__class__", [], {}, [[]], {"": ""}, {"a": {"b": {"c": [1, {"d": None}]}}}, [1, "2", 3.0, None], {"__proto__": 1},
    {"x" * 300: 1}, [None] * 50,
)  # fmt: skip

_KNOWN = "Invalid UTF-8 sequence received from client"  # the web server tells of it so, and closes the connection
_ABANDONED = "unexpected connection_lost() call"  # a connection that an earlier test gave up, when it is collected


class Fuzz:
    """A source of bodies."""

    def __init__(self, seed: str, good: Sequence[Any]) -> None:
        self.chance = random.Random(seed)
        self._good = list(good)

    def body(self) -> bytes:
        """Make the next body."""
        data = deepcopy(self.chance.choice(self._good))
        for _ in range(self.chance.choice((0, 1, 1, 1, 2, 3))):
            data = self._changed(data)
        text = json.dumps(data)
        if self.chance.random() < 0.02:
            text = text.replace("}", "," + '"deep":' + "[" * self.chance.choice((10, 70, 3_000)) + "}", 1)
        raw = text.encode("utf-8", "surrogatepass")
        return self._scrambled(raw) if self.chance.random() < 0.25 else raw

    def text(self) -> str:
        """Make a piece of an address: a parameter of a path or a query."""
        return str(self.chance.choice(NASTY))

    def _nasty(self) -> Any:
        return deepcopy(self.chance.choice(NASTY))

    def _changed(self, data: Any) -> Any:
        """Change one place of plain data."""
        if not isinstance(data, dict | list) or not data or self.chance.random() < 0.15:
            return self._nasty()
        key = self.chance.choice(list(data) if isinstance(data, dict) else range(len(data)))
        what = self.chance.random()
        if what < 0.15:
            del data[key]
        elif what < 0.3:
            if isinstance(data, dict):
                data[self.text()] = self._nasty()
            else:
                data.append(self._nasty())
        else:
            data[key] = self._changed(data[key])
        return data

    def _scrambled(self, raw: bytes) -> bytes:
        """Change some bytes."""
        body = bytearray(raw)
        for _ in range(self.chance.randrange(1, 4)):
            place = self.chance.randrange(len(body) + 1)
            body[place : place + self.chance.randrange(4)] = self.chance.randbytes(self.chance.randrange(5))
        if self.chance.random() < 0.2:
            del body[self.chance.randrange(len(body) + 1) :]
        return bytes(body)


async def asked(
    app: ASGIApp,
    method: str,
    target: str,
    body: bytes,
    media: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Answered:
    """Send a request without a socket."""
    path, _, query = target.partition("?")
    status, told, parts = 0, {}, []
    ended = asyncio.Event()

    async def receive() -> Any:
        if ended.is_set():
            return {"type": "http.disconnect"}
        ended.set()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, told
        if message["type"] == "http.response.start":
            status = message["status"]
            told = {key.decode(): value.decode("latin-1") for key, value in message["headers"]}
        else:
            parts.append(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in {"Host": "127.0.0.1", "Content-Type": media, **(headers or {})}.items()
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8082),
    }
    await app(scope, receive, send)
    return status, told, b"".join(parts)


def in_address(text: str) -> str:
    """Write a text as a piece of an address."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


@contextmanager
def no_traces() -> Iterator[None]:
    """Hold everything in this to it that no trace of a mistake is logged."""
    found: list[logging.LogRecord] = []

    class Traces(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            why = str(record.exc_info[1]) if record.exc_info else ""
            is_known = record.getMessage().startswith(_KNOWN) or why == _ABANDONED
            if (record.exc_info or record.levelno >= logging.CRITICAL) and not is_known:
                found.append(record)

    handler = Traces()
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
    assert [record.getMessage() for record in found] == [], found[0].exc_info
