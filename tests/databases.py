"""PostgreSQL databases for tests of the store: one server per test process, emptied before each use.

It does not wait for the disk: what a crash of the machine does is not its subject. Those that stop a server start one of
their own.
"""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache

import psycopg

from noetl.stores.queries import scripts
from tests.services import postgres_server

_TABLES = (
    "log", "writer", "execution", "queue", "timer", "message", "snapshot", "playbook", "catalog", "catalog_path",
    "result", "result_piece", "runtime", "token", "credential", "keychain", "audit", "request_key", "schedule", "outbox", "dlq", "duty",
)  # fmt: skip
_EMPTY = "; ".join(
    ["SET search_path = noetl", *(f"DELETE FROM {name}" for name in _TABLES), "ALTER SEQUENCE lease_epoch RESTART"]
)


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


@cache
def _made(name: str) -> str:
    """Make a database with the tables of the store."""
    server = server_address()
    _connection(server).execute(f"CREATE DATABASE {name}".encode())
    address = server.rsplit("/", 1)[0] + f"/{name}"
    connection = _connection(address)
    connection.execute(b"CREATE SCHEMA noetl; SET search_path = noetl")
    [(text, _)] = scripts("postgres", "schema.sql")
    connection.execute(text.encode())
    levels = enumerate(scripts("postgres", "migrations"), 1)
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO noetl.migration (level, name) VALUES (%s, %s)", [(n, t) for n, (_, t) in levels]
        )
    return address


def fresh_database(name: str = "conformance") -> str:
    """Give the address of a database in which every table of the store is there and empty."""
    address = _made(name)
    _connection(address).execute(_EMPTY.encode())
    return address
