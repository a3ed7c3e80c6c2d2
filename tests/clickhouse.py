"""Serve ClickHouse's engine over its HTTP interface, in a process of its own.

    python tests/clickhouse.py FOLDER

prints the port. Only what an export needs: a statement in the body, or in `query` with its data in the body.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

PACKAGES = Path(sys.prefix, "clickhouse")  # where scripts/clickhouse.sh puts the engine
USER, PASSWORD = "noetl", "canary-password"


def is_there() -> bool:
    return (PACKAGES / ".complete").exists()


@contextmanager
def clickhouse(folder: Path) -> Iterator[str]:
    """Run a server on data in a folder; gives its URL with a user."""
    command = [sys.executable, __file__, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        try:
            port = int(running.stdout.readline())
            yield f"http://{USER}:{PASSWORD}@127.0.0.1:{port}"
        finally:
            running.kill()


def main(folder: str) -> None:
    sys.path.append(str(PACKAGES))
    session: Any = import_module("chdb.session").Session(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            query = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
            if (self.headers.get("X-ClickHouse-User"), self.headers.get("X-ClickHouse-Key")) != (USER, PASSWORD):
                self.answer(403, b"Code: 516. Authentication failed")
                return
            text = f"{query}\n{body}" if query else body
            plain = not query and re.match(r"SELECT|EXISTS", text) and "FORMAT" not in text
            try:
                found = session.query(text + (" FORMAT TabSeparated" if plain else ""))
            except Exception as error:  # noqa: BLE001  whatever the engine says
                self.answer(404, str(error).encode())
            else:
                self.answer(200, found.bytes() if hasattr(found, "bytes") else b"")

        def answer(self, status: int, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1])
