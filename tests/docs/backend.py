"""A web service on loopback for the examples; it records every request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

PAGES = {"customers": 3, "orders": 1, "refunds": 2}
CUSTOMER = {
    "orders": [{"amount": 30}, {"amount": 50}],
    "tickets": [{"id": 1}, {"id": 2}, {"id": 3}],
    "address": {"city": "Lisbon"},
}


@dataclass
class Backend:
    """The service's address, what it was asked, and how it behaves."""

    url: str = ""
    asked: list[str] = field(default_factory=list)  # "METHOD /path", in the order of arrival
    bodies: list[Any] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)  # the idempotency keys that came along
    refused: frozenset[str] = frozenset()  # paths that are answered with 409
    lock: Lock = field(default_factory=Lock)

    def count(self, request: str) -> int:
        return self.asked.count(request)

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path in self.refused:
            return 409, {"reason": "nothing is left"}
        match [method, *path.strip("/").split("/")]:
            case ["GET", "readings"]:
                busy = self.count("GET /readings") == 1
                return (
                    (503, {})
                    if busy
                    else (200, [{"hour": 0, "kelvin": 280.15}, {"hour": 1, "kelvin": 284.65}, {"hour": 2}])
                )
            case ["GET", name] if name in PAGES:
                page = int(query["page"])
                return 200, {"items": [{"page": page}] * 2, "next": page + 1 if page < PAGES[name] else None}
            case ["GET", "customers", _, what]:
                return 200, CUSTOMER[what]
            case ["POST", "exports"]:
                return 201, {"id": f"export-{body['table']}"}
            case ["GET", "exports", job]:
                ready = self.count(f"GET /exports/{job}") >= 3
                return 200, {"state": "ready" if ready else "running", "download_url": f"{self.url}/files/{job}"}
            case ["GET", "files", _]:
                return 200, {"rows": [1, 2, 3]}
            case ["POST", "charge" | "events"]:
                return 202, {}
            case ["POST", "flights" | "hotels" | "cars" as what]:
                return 201, {"id": f"{what}-1"}
            case ["GET", "fresh", "orders"]:
                orders: list[dict[str, Any]] = [
                    {"id": 8, "customer": "O'Hara", "amount": 12.5},
                    {"id": 9, "customer": "Li", "amount": 3},
                ]
                return 200, [order for order in orders if order["id"] > int(query["since"])]
            case ["POST", "send"]:
                return (422, {}) if body["to"] == "nobody" else (200, {"sent": True})
            case ["DELETE", *_]:
                return 200, {}
        return 404, {}


@contextmanager
def backend(refused: frozenset[str] = frozenset()) -> Iterator[Backend]:
    """Serve on a free port until the block ends."""
    found = Backend(refused=refused)

    class Handler(BaseHTTPRequestHandler):
        def answer_it(self) -> None:
            address = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(address.query).items()}
            text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = json.loads(text) if text else None
            with found.lock:
                found.asked.append(f"{self.command} {address.path}")
                found.bodies.append(body)
                found.keys.append(self.headers.get("Idempotency-Key", ""))
                status, data = found.answer(self.command, address.path, query, body)
            answer = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Keep quiet: what was asked is remembered."""

    for method in ("GET", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer_it)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
