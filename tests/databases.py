"""PostgreSQL databases for store tests: one server per test process.

Each database is emptied before use, or dropped after it. The server does not flush to the disk. Tests that stop or crash a server start
their own.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import count

import psycopg

from noetl.stores.common.queries import hash_of, migrations
from tests.services import postgres_server

_TABLES = (
    "log", "writer", "execution", "queue", "timer", "message", "snapshot", "playbook", "catalog", "catalog_path",
    "result", "result_piece", "runtime", "token", "credential", "access_token", "data_key", "audit", "audit_head", "person", "person_group", "person_session", "request_key", "outbox", "schedule", "firing",
    "playbook_trigger", "feed_position", "subscription_state", "subscription_message", "dlq", "duty", "probe", "rate",
)  # fmt: skip
_EMPTY = "; ".join(
    ["SET search_path = noetl", *(f"DELETE FROM {name}" for name in _TABLES), "ALTER SEQUENCE lease_epoch RESTART"]
)

_NEXT = "SELECT setval('noetl.lease_epoch', 1000)"  # an epoch is never given twice


@cache
def server_address() -> str:
    stack = ExitStack()
    atexit.register(stack.close)
    server = stack.enter_context(
        postgres_server(fsync="off", synchronous_commit="off", full_page_writes="off", shared_buffers="64MB")
    )
    return server.address()


@cache
def _connection(address: str) -> psycopg.Connection[tuple[object, ...]]:
    opened = psycopg.connect(address, autocommit=True)
    atexit.register(opened.close)
    return opened


_numbers = count(1)


@contextmanager
def empty_database() -> Iterator[str]:
    """Create a database without any table, yield its address and drop it."""
    server, name = server_address(), f"empty_{next(_numbers)}"
    _connection(server).execute(f"CREATE DATABASE {name}".encode())
    try:
        yield server.rsplit("/", 1)[0] + f"/{name}"
    finally:
        _connection(server).execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@cache
def _create(name: str) -> str:
    """Create a database with the tables of the store, and return its address."""
    server = server_address()
    _connection(server).execute(f"CREATE DATABASE {name}".encode())
    address = server.rsplit("/", 1)[0] + f"/{name}"
    connection = _connection(address)
    connection.execute(b"CREATE SCHEMA noetl; SET search_path = noetl")
    for level, (text, title) in enumerate(migrations("postgres"), 1):
        connection.execute(text.encode())
        row = (level, title, hash_of(text))
        connection.execute("INSERT INTO migration (level, name, hash) VALUES (%s, %s, %s)", row)
    return address


def fresh_database(name: str = "conformance") -> str:
    """Return the address of a database with every table of the store, all empty."""
    address = _create(name)
    _connection(address).execute(_EMPTY.encode())
    return address


def keep(address: str) -> None:
    """Copy every table of a database, for `bring_back`."""
    copies = "; ".join(f"CREATE TABLE kept.{name} AS TABLE noetl.{name}" for name in _TABLES)
    _connection(address).execute(f"CREATE SCHEMA kept; {copies}".encode())


def bring_back(address: str) -> None:
    """Fill a database that no server uses with what was kept of it."""
    rows = (f"INSERT INTO noetl.{name} OVERRIDING SYSTEM VALUE TABLE kept.{name}" for name in _TABLES)
    _connection(address).execute("; ".join((_EMPTY, *rows, _NEXT)).encode())
