"""A web service that records every request with its idempotency key.

`POST /do/…` is done after a moment, `POST /do/…/big` with a large answer; `POST /flaky/…` is refused the first time a key comes; `POST /slow/…` is answered when
the test says so, or never: who hangs up before is written down.
"""

from __future__ import annotations

import json
import select
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from time import sleep

_MOMENT_S = 0.02
BIG = 500_000


@dataclass
class Ledger:
    """What was asked, by whom, and how often."""

    url: str = ""
    asked: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # what → keys, in order of arrival
    hung_up: list[str] = field(default_factory=list)
    go: Event = field(default_factory=Event)  # slow ones are answered from now on
    lock: Lock = field(default_factory=Lock)

    def note(self, path: str, key: str) -> int:
        """Write a request down; gives how often this key came."""
        with self.lock:
            self.asked[path].append(key)
            return self.asked[path].count(key)


@contextmanager
def ledger() -> Iterator[Ledger]:
    """Serve on a free port until the block ends."""
    found = Ledger()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            times = found.note(self.path, self.headers.get("Idempotency-Key", ""))
            if self.path.startswith("/flaky/") and times == 1:
                self._say(503)
            elif self.path.startswith("/slow/"):
                self._wait()
            else:
                sleep(_MOMENT_S)
                self._say(200)

        def _wait(self) -> None:
            while not found.go.wait(0.02):
                if self._is_gone():
                    found.hung_up.append(self.path)
                    self.close_connection = True
                    return
            self._say(200)

        def _is_gone(self) -> bool:
            try:
                return bool(select.select([self.connection], [], [], 0)[0]) and not self.connection.recv(1)
            except OSError:
                return True

        def _say(self, status: int) -> None:
            body = json.dumps({"path": self.path, "text": "x" * (BIG if self.path.endswith("/big") else 0)}).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.go.set()
        server.shutdown()
        server.server_close()
        thread.join()
