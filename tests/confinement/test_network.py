"""Networks: private databases of tasks, and processes without any network."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from noetl.settings import settings
from noetl.wiring.embedded import confined, egress_rules
from noetl.worker.http.clients import HttpClient
from noetl.worker.http.egress import Egress
from noetl.worker.processes import network, sandbox
from tests.databases import empty_database
from tests.tools.attempts import Attempts
from tests.tools.web import Web

pytestmark = pytest.mark.asyncio
SHUT = Egress(private=False)
SETTING = "NOETL_EGRESS_PRIVATE"
QUERY = {"query": "SELECT 1 AS one"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with empty_database() as started:
        yield started


@asynccontextmanager
async def attempts(egress: Egress | None, **more: Any) -> AsyncIterator[Attempts]:
    client = HttpClient(egress)
    made = Attempts(egress=egress, http=client.get(), **more)
    try:
        yield made
    finally:
        await made.close()
        await client.close()


def spellings(address: str) -> list[dict[str, str]]:
    """Ways to name a database of this machine."""
    parts = urlsplit(address)
    database, port, user = parts.path.strip("/"), str(parts.port or 5432), parts.username or ""
    own = {"dbname": database, "port": port, "user": user, "password": parts.password or ""}
    return [
        {"dsn": address},
        {**own, "host": "localhost"},
        {**own, "host": "::ffff:127.0.0.1"},
        {**own, "host": "0x7f.1"},
        {"dsn": f"host=example.com hostaddr=127.0.0.1 port={port} dbname={database} user={user}"},
        {"dsn": f"host=93.184.216.34,127.0.0.1 port={port} dbname={database} user={user}"},
        {"dsn": f"host=/var/run/postgresql dbname={database} user={user}"},
        {"dsn": f"dbname={database} user={user} port={port}"},
        {"dsn": f"service=anything dbname={database}"},
    ]


async def test_a_private_database_is_denied_however_it_is_named(address: str) -> None:
    async with attempts(SHUT) as shut:
        for auth in spellings(address):
            error = (await shut.run("postgres", QUERY, auth=auth)).error
            assert (error.code, error.retryable) == ("EGRESS_DENIED", False), (auth, error)
            assert SETTING in error.message


async def test_a_private_database_that_the_operator_names_is_reached(address: str) -> None:
    host = urlsplit(address).hostname or ""
    async with attempts(Egress(private=False, near=(host, "127.0.0.0/8"))) as opened:
        assert (await opened.run("postgres", QUERY, auth={"dsn": address})).result["rows"] == [{"one": 1}]
    async with attempts(None) as free:
        assert (await free.run("postgres", QUERY, auth={"dsn": address})).result["rows"] == [{"one": 1}]


async def test_a_transfer_obeys_the_same_rules(address: str, web: Web) -> None:
    target = {"kind": "file", "path": "/tmp/never.jsonl"}
    sources = [{"kind": "postgres", "query": "SELECT 1 AS one"}, {"kind": "http", "url": web.url + "/json"}]
    async with attempts(SHUT) as shut:
        for source in sources:
            tried = await shut.run("transfer", {"source": source, "target": target}, auth={"dsn": address})
            assert tried.error.code == "EGRESS_DENIED"
            assert SETTING in tried.error.message
        script = await shut.run("script", {"uri": web.url + "/x.sh"})
        assert (script.error.code, SETTING in script.error.message) == ("EGRESS_DENIED", True)
    assert web.asked == []


async def test_an_error_names_the_setting(web: Web) -> None:
    async with attempts(SHUT) as shut:
        error = (await shut.run("http", {"url": web.url})).error
        assert (error.code, SETTING in error.message) == ("EGRESS_DENIED", True)


@pytest.mark.skipif(network.problem() is not None, reason=str(network.problem()))
@pytest.mark.parametrize("mode", [mode for mode in sandbox.MODES if sandbox.problem(mode) is None])
async def test_processes_without_a_network_open_no_socket(mode: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"""
import socket, subprocess, sys
refused = []
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try:
            socket.socket(family, kind).close()
        except PermissionError:
            continue
        except OSError:
            pass
        refused.append(str(family))
socket.socketpair()
call = "import socket; socket.create_connection(('127.0.0.1', {port}))"
result = [refused, subprocess.run([sys.executable, "-c", call], capture_output=True).returncode]
"""
        async with attempts(None, sandbox=mode, has_network=False) as shut:
            assert (await shut.python(code)).result == [[], 1]
            failed = await shut.python(f"import socket\nsocket.create_connection(('127.0.0.1', {port}))")
            assert "no network (NOETL_TASK_NETWORK)" in failed.error.message
            shell = await shut.run("shell", {"command": f'{sys.executable} -c "{code.splitlines()[-3][8:-1]}"'})
            assert shell.outcome.status == "error"
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("given", "several", "expected"),
    [
        ({}, False, ("none", True, True)),
        ({}, True, (sandbox.strongest(), False, network.problem() is not None)),
        ({"NOETL_SANDBOX": "none", SETTING: "allow", "NOETL_TASK_NETWORK": "allow"}, True, ("none", True, True)),
        ({SETTING: "deny", "NOETL_TASK_NETWORK": "deny"}, False, ("none", False, False)),
    ],
)
async def test_what_is_not_set_depends_on_who_uses_the_server(
    tmp_path: Any, given: dict[str, str], several: bool, expected: tuple[str, bool, bool]
) -> None:
    found = confined(settings(given, tmp_path), several_users=several)
    assert (found.sandbox, found.egress_private, found.task_network) == expected


async def test_private_hosts_are_named_in_a_setting(tmp_path: Any) -> None:
    found = confined(settings({SETTING: "10.0.0.0/8, db.internal"}, tmp_path), several_users=False)
    assert egress_rules(found) == Egress(private=False, near=("10.0.0.0/8", "db.internal"))
