"""The HTTP API: one file per noun, each with a `noun` that holds its routes.

A new noun is a file here and an entry in the table. Tested in tests/server.
"""

from __future__ import annotations

from importlib import import_module

from noetl.server.http.endpoint import Endpoint, Noun

NOUNS = (
    "health", "execute", "execute_many", "executions", "steering", "dlq", "events", "results", "vars", "catalog", "playbooks", "credentials", "keychain",
    "worker", "blobs", "outbox", "workers", "queue", "tokens", "audit", "context", "page",
)  # fmt: skip


def nouns() -> list[Noun]:
    """Return every noun."""
    return [import_module(f"noetl.server.api.{name}").noun for name in NOUNS]


def endpoints() -> list[Endpoint]:
    """Return every route."""
    return [endpoint for noun in nouns() for endpoint in noun.endpoints]
