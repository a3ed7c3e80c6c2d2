"""The HTTP API: each noun is a file with a `noun`. Tested in tests/server."""

from __future__ import annotations

from importlib import import_module

from noetl.server.http.endpoint import Endpoint, Noun

NOUNS = (
    "admin.health", "executions.execute", "executions.execute_many", "executions.executions", "executions.moments",
    "executions.compare", "executions.steering",
    "executions.trials", "triggers.schedules", "triggers.webhooks", "triggers.notifications", "triggers.subscriptions", "triggers.ended",
    "executions.dlq", "executions.events", "executions.runs", "executions.overview", "executions.alerts", "executions.statistics", "executions.results", "executions.vars",
    "catalog.catalog", "catalog.language", "catalog.playbooks", "catalog.credentials", "catalog.keychain", "workers.worker",
    "executions.many",
    "workers.blobs", "workers.outbox", "workers.workers", "workers.queue", "admin.tokens", "admin.keys", "admin.session", "admin.users",
    "admin.groups", "admin.audit",
    "executions.context", "admin.page",
)  # fmt: skip


def nouns() -> list[Noun]:
    """Return every noun."""
    return [import_module(f"noetl.server.api.{name}").noun for name in NOUNS]


def endpoints() -> list[Endpoint]:
    """Return every route."""
    return [endpoint for noun in nouns() for endpoint in noun.endpoints]
