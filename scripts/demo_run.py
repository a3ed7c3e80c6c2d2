"""Run a playbook on a server over HTTP.

    python scripts/demo_run.py URL FILE [KEY=VALUE…]

An example of the API. `noetl token show` has printed the server's token into NOETL_TOKEN. Exits with 1 if the execution did
not complete.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

_AUTH = {"Authorization": f"Bearer {os.environ.get('NOETL_TOKEN', '')}"}
_WIDTH = 110  # of the result; the rest is cut


def ask(url: str, method: str, path: str, body: Any = None) -> Any:
    """Send a request and return the answer; print the server's error."""
    print(f"{method} {path}")
    data = None if body is None else json.dumps(body).encode()
    request = Request(url + path, data, {"Content-Type": "application/json", **_AUTH}, method=method)
    try:
        with urlopen(request) as answer:
            return json.load(answer)
    except HTTPError as error:
        sys.exit(error.read().decode())


def events(url: str, execution_id: str) -> Iterator[dict[str, Any]]:
    """Yield the events of an execution until it ends."""
    path = f"/api/executions/{execution_id}/events/stream"
    print(f"GET {path}")
    with urlopen(Request(url + path, headers=_AUTH)) as stream:
        for line in stream:
            name, _, value = line.decode().strip().partition(": ")
            if (name, value) == ("event", "end"):
                return
            if name == "data":
                yield json.loads(value)


def main(url: str, file: str, *given: str) -> int:
    payload = dict(pair.split("=", 1) for pair in given)
    content = Path(file).read_text(encoding="utf-8")
    path = ask(url, "POST", "/api/catalog", {"content": content})["path"]
    typed = {key: int(value) if value.isdigit() else value for key, value in payload.items()}
    started = ask(url, "POST", "/api/execute", {"path": path, "payload": typed})["execution_id"]
    count = sum(1 for _ in events(url, started))
    found = ask(url, "GET", f"/api/executions/{started}")
    result = json.dumps(found.get("result"))
    print(f"{found['status']} after {count} events: {result if len(result) <= _WIDTH else result[:_WIDTH] + ' …'}")
    return 0 if found["status"] == "completed" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
