"""Real HTTP server on loopback that responds by path and records requests."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Web:
    """Responses by path: `/status/503`, `/text`, `/redirect`, `/hang`, `/drop`."""

    asked: list[Asked] = field(default_factory=list)
    retry_after: str | Callable[[], str] | None = None  # a function is called for each response
    pages: dict[str, Any] = field(default_factory=dict)  # JSON by path
    headers: dict[str, dict[str, str]] = field(default_factory=dict)  # by path; a `Location` is a redirect
    dropped: threading.Event = field(default_factory=threading.Event)  # a client left during `/endless`

    def __post_init__(self) -> None:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                return

            def answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                web.asked.append(Asked(self.command, self.path, headers, self.rfile.read(length)))
                web.reply(self)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 - the names of the base class

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path.partition("?")[0]
        if path == "/hang":
            time.sleep(1)
        if path == "/drop":
            handler.close_connection = True
            handler.connection.close()
            return
        code, kind, content, extra = 200, "application/json", json.dumps({"n": 1}).encode(), {}
        if path.startswith("/status/"):
            code, content = int(path.rsplit("/", 1)[1]), b'{"why": "asked"}'
            after = self.retry_after
            extra = {"Retry-After": after() if callable(after) else after} if after else {}
        elif path == "/endless":
            self._endless(handler)
            return
        elif path in self.headers:
            extra = self.headers[path]
            code = 302 if "Location" in extra else 200
        elif path in self.pages:
            content = json.dumps(self.pages[path]).encode()
        elif path == "/text":
            kind, content = "text/plain", "grüße".encode()
        elif path == "/bytes":
            kind, content = "application/octet-stream", b"\xff\x00"
        elif path == "/redirect":
            code, extra, content = 302, {"Location": "/json"}, b""
        elif path == "/empty":
            code, content = 204, b""
        handler.send_response(code)
        handler.send_header("Content-Type", kind)
        for name, value in extra.items():
            handler.send_header(name, value.encode().decode("latin-1"))
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    def _endless(self, handler: BaseHTTPRequestHandler) -> None:
        """Send a body that never ends, until the other side is gone."""
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            self.dropped.set()
