"""Tests of credentials: what each type reaches, and that no value is shown.

PostgreSQL is real. NATS and MySQL are small servers that replay the documented greeting.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from noetl.clock import SteadyClock
from noetl.wire.answers import CredentialTested
from noetl.wiring.credential_test import CredentialTests
from noetl.worker.http.egress import Egress
from tests.databases import server_address
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
SECRET = "s3cret-of-the-test"


async def tried(kind: str, data: dict[str, Any], url: str | None = None) -> CredentialTested:
    found = await CredentialTests(None, SteadyClock("test"))("mine", kind, data, url)
    assert SECRET not in str(found)
    return found


@asynccontextmanager
async def listening(greeting: bytes, expected: bytes = b"") -> AsyncIterator[int]:
    """A server that greets, and signs in what sends the expected bytes."""

    served: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.ensure_future(serve(reader, writer)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(greeting)
        line = await reader.readline()
        if line:
            writer.write(b"PONG\r\n" if expected in line else f"-ERR 'Authorization Violation {SECRET}'\r\n".encode())
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*served)


async def test_postgres_is_signed_in_to() -> None:
    found = await tried("postgres", {"dsn": server_address()})
    assert found.ok, found
    assert found.reached.startswith("PostgreSQL ")
    assert found.message == "Signed in as noetl to the database postgres."
    missing = await tried("postgres", {"dsn": server_address().rsplit("/", 1)[0] + "/none", "password": SECRET})
    assert missing.ok is False
    assert 'database "none" does not exist' in missing.message


async def test_a_web_credential_requests_its_url() -> None:
    web = Web()
    try:
        found = await tried("bearer", {"token": SECRET, "test_url": f"{web.url}/text"})
        assert (found.ok, found.reached, found.message) == (True, f"{web.url}/text", "GET answered 200 OK.")
        assert web.asked[0].headers["authorization"] == f"Bearer {SECRET}"
        refused = await tried("api_key", {"api_key": SECRET}, f"{web.url}/status/403")
        assert (refused.ok, "403" in refused.message) == (False, True)
    finally:
        web.close()
    nowhere = await tried("basic", {"username": "ada", "password": SECRET})
    assert (nowhere.ok, "--url" in nowhere.message) == (None, True)


async def test_a_token_server_issues_a_token() -> None:
    web = Web(pages={"/token": {"access_token": "t", "expires_in": 60}})
    try:
        found = await tried("oauth2", {"token_url": f"{web.url}/token", "client_id": "a", "client_secret": SECRET})
        assert (found.ok, found.message) == (True, "The server issued a token for 60 seconds.")
        failed = await tried("oauth2", {"token_url": f"{web.url}/status/401", "client_secret": SECRET})
        assert (failed.ok, "401" in failed.message) == (False, True)
    finally:
        web.close()


async def test_nats_is_signed_in_to() -> None:
    greeting = b"INFO " + json.dumps({"version": "2.10.1"}).encode() + b"\r\n"
    async with listening(greeting, b'"pass": "' + SECRET.encode()) as port:
        data = {"url": f"nats://127.0.0.1:{port}", "user": "ada", "password": SECRET}
        found = await tried("nats", data)
        assert (found.ok, found.reached) == (True, f"NATS 2.10.1 at 127.0.0.1:{port}")
        refused = await tried("nats", {**data, "password": "wrong"} | {"token": SECRET})
        assert (refused.ok, "Authorization Violation" in refused.message) == (False, True)
    async with listening(b"HTTP/1.1 200 OK\r\n") as port:
        other = await tried("nats", {"url": f"127.0.0.1:{port}"})
        assert (other.ok, "is no NATS server" in other.message) == (False, True)


async def test_mysql_is_greeted() -> None:
    async with listening(b"\x4a\x00\x00\x00\x0a8.4.2\x00rest") as port:
        found = await tried("mysql", {"host": "127.0.0.1", "port": port, "password": SECRET})
        assert (found.ok, found.reached) == (True, f"MySQL 8.4.2 at 127.0.0.1:{port}")
        assert "were not tried" in found.message
    closed = await tried("mysql", {"host": "127.0.0.1", "port": port})
    assert (closed.ok, closed.message.startswith("Cannot connect")) == (False, True)


async def test_a_sqlite_file_is_read(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.db").execute("CREATE TABLE a (b)").connection.close()
    assert (await tried("sqlite", {"path": str(tmp_path / "a.db")})).ok
    missing = await tried("sqlite", {"path": str(tmp_path / "none.db")})
    assert missing.ok is False
    assert not (tmp_path / "none.db").exists()


async def test_what_cannot_be_tested_says_so() -> None:
    found = await tried("generic", {"anything": SECRET})
    assert (found.ok, "nothing to connect to" in found.message) == (None, True)


@pytest.mark.parametrize("value", [{"\0": 1}, ["a"], 2**70, "\ud800", "\0", "= a =", "://a"])
@pytest.mark.parametrize(
    "kind",
    ["postgres", "mysql", "sqlite", "oauth2", "nats", "bearer", "s3", "gcs", "azure", "snowflake", "service_account"],
)
async def test_an_odd_value_is_an_answer(kind: str, value: Any) -> None:
    names = ("dsn", "host", "port", "url", "servers", "path", "token_url", "test_url", "token", "user",
             "service_account_json", "connection_string", "bucket", "private_key")  # fmt: skip
    for given in (dict.fromkeys(names, value), *({name: value} for name in names)):
        assert not (await tried(kind, given)).ok


async def test_a_server_with_rules_opens_no_file_for_others(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.db").execute("CREATE TABLE a (b)").connection.close()
    tests = CredentialTests(Egress((), (), private=False), SteadyClock("test"))
    found = await tests("mine", "sqlite", {"path": str(tmp_path / "a.db")})
    assert (found.ok, found.reached) == (None, "")
