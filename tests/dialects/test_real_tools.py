"""Examples of older dialects with real tools.

These are a web server, PostgreSQL, DuckDB, processes and files. Each runs as a user runs it: credentials are put in the
store, and the playbook is a file. Its upgrade does the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml

from tests.acceptance.run import noetl
from tests.acceptance.running import Folder
from tests.databases import empty_database
from tests.tools.web import Web

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("real.yaml").read_text())


class Site(Web):
    """Numbers, pages, jobs and charges."""

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        path, _, query = handler.path.partition("?")
        first, _, last = path.strip("/").partition("/")
        code = 200
        found: dict[str, Any] = {}
        if first == "number":
            found = {"n": int(last) * 10}
        elif first == "items":
            page = int(query.rpartition("=")[2] or 1)
            found = {"page": page, "results": [page * 10, page * 10 + 1], "nextCursor": page + 1 if page < 3 else None}
        elif first == "jobs":
            asked = sum(one.path == handler.path for one in self.asked)
            found = {"state": "done" if asked > 2 else "queued", "asked": asked} if last else {"id": "j1"}
        elif first == "charge":
            code = 200 if last == "accepted" else 402
        content = json.dumps(found).encode()
        handler.send_response(code)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@pytest.fixture
def site() -> Iterator[Site]:
    web = Site()
    yield web
    web.close()


@pytest.fixture
def database() -> Iterator[str]:
    with empty_database() as address:
        yield address


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_it_runs_and_its_upgrade_does_the_same(case: dict[str, Any], tmp_path: Path, site: Site, database: str) -> None:
    folder = Folder(tmp_path)
    for name in ("pg", "pg_k8s"):
        given = json.dumps({"dsn": database}).encode()
        stored = noetl("credential", "put", name, "--kind", "postgres", "--data", "-", cwd=tmp_path, stdin=given)
        assert stored.code == 0, stored.err
    file = tmp_path / "case.yaml"
    file.write_text(case["playbook"].replace("WEB", site.url))
    first = run(case, folder, site, database)
    upgraded = folder.call("upgrade", "case.yaml", "--write")
    assert upgraded.code == 0, upgraded.err
    assert "apiVersion: noetl.io/v10" in file.read_text()
    site.asked.clear()
    again = run(case, folder, site, database)
    assert again == first
    assert again.total() > 5


def run(case: dict[str, Any], folder: Folder, site: Site, database: str) -> Counter[str]:
    """Run a playbook on an empty database, and return its events."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(b"DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        connection.execute(case.get("setup", "SELECT 1").encode())
        ran = folder.run("case.yaml", "--payload", json.dumps(case.get("payload", {})))
        expect = case["expect"]
        assert ran.status == expect.get("status", "completed"), ran.data
        if "result" in expect:
            assert ran.result == expect["result"]
        for query, rows in expect.get("rows", {}).items():
            assert [list(row) for row in connection.execute(query.encode()).fetchall()] == rows
    sent = [json.loads(one.body) for one in site.asked if one.body]
    for wanted, found in zip(expect.get("sent", ()), sent, strict=False):
        assert wanted.items() <= found.items()
    assert len(sent) >= len(expect.get("sent", ()))
    return Counter(f"{one['event_type']} {one['step']} {one['status']}" for one in folder.events())
