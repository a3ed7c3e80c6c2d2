"""Composition root of the outbox: its table, the relay and the targets.

The `http` tool delivers `http` messages, with its timeouts, credentials and limits. A package adds a target as a coroutine
function in the entry point group `noetl.outbox`, which takes the message and the `ToolContext` and returns an outcome. Tested in tests/acceptance/admin/test_outbox_cli.py and tests/unit/server/background/test_outbox_relay.py.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import entry_points
from typing import Any, cast
from urllib.parse import quote

from noetl.dsl.grammar.kinds import Kinds
from noetl.engine.tasks.actions import RunTask
from noetl.engine.tasks.retry import Schedule
from noetl.engine.tasks.run_info import RunInfo
from noetl.masking.values import in_process
from noetl.model.errors import InvalidInput
from noetl.model.outcome import Outcome, failed
from noetl.ports import Clock, ToolContext, Tools
from noetl.ports.letters import DeadLetters
from noetl.ports.outbox import Outbox, OutboxMessage
from noetl.ports.work import run_tool
from noetl.server.background.dead_letter_topic import DeadLetterTopic
from noetl.server.background.outbox_relay import OutboxRelay
from noetl.settings import OutboxSettings, Settings
from noetl.worker.http.clients import HttpClient
from noetl.worker.tool_context import DetachedRun, TaskContext, WorkerResources

GROUP = "noetl.outbox"
Target = Callable[[OutboxMessage, ToolContext], Awaitable[Outcome]]


def open_outbox(store: object) -> Outbox:
    """Return the outbox of a store."""
    from noetl.stores.postgres.outbox import PostgresOutbox
    from noetl.stores.postgres.store import PostgresStore
    from noetl.stores.sqlite.outbox import SqliteOutbox
    from noetl.stores.sqlite.store import SqliteStore

    if isinstance(store, PostgresStore):
        return PostgresOutbox(store.database)
    if isinstance(store, SqliteStore):
        return SqliteOutbox(store.database)
    raise InvalidInput("This store has no outbox.")


@asynccontextmanager
async def open_relay(
    settings: Settings,
    store: object,
    clock: Clock,
    tools: Any,
    client: HttpClient,
    credential: Callable[[str], Awaitable[Mapping[str, Any]]],
) -> AsyncIterator[OutboxRelay]:
    """Open the relay of a store; the caller runs or drains it. `tools` are the kinds."""
    delivery, unused = settings.outbox, cast(Any, None)
    known = (cast(Tools, tools), cast(Kinds, tools))
    shared = WorkerResources(unused, *known, clock, unused, unused, client.get, credential, folder=os.getcwd())

    async def deliver(message: OutboxMessage) -> Outcome:
        return shared.secrets.outcome(await _deliver(message, shared, delivery))

    schedule = Schedule(delivery.max_attempts, delivery.base_ms, "exponential", delivery.max_ms, jitter=0.5)
    try:
        kept_ms, outbox = delivery.days * 86_400_000, open_outbox(store)
        topic = None
        if settings.publishes_letters:
            topic = DeadLetterTopic(cast(DeadLetters, store), outbox, clock, settings.dlq_topic, kept_ms)
        with in_process(shared.secrets.known):
            yield OutboxRelay(
                outbox, deliver, clock, schedule, timeout_ms=delivery.timeout_ms, kept_ms=kept_ms, topic=topic
            )
    finally:
        await shared.shared.close()
        await client.close()


@cache
def _package_targets() -> Mapping[str, Target]:
    """Return the targets of installed packages by name."""
    return {found.name: cast(Target, found.load()) for found in entry_points(group=GROUP)}


async def _deliver(message: OutboxMessage, shared: WorkerResources, settings: OutboxSettings) -> Outcome:
    fields: dict[str, Any] = {}
    if message.target == "http":
        address = message.address or (settings.url and f"{settings.url.rstrip('/')}/{quote(message.topic, safe='')}")
        if not address:
            text = "the message has no address, and NOETL_OUTBOX_URL is not set"
            return failed("client_error", text, code="NO_ADDRESS")
        topic = {"X-NoETL-Topic": message.topic} if message.topic else {}
        fields = {"method": "POST", "url": address, "headers": {**topic, **message.headers}, "json": message.payload}
        if message.payload is None:
            del fields["json"]
    attempt, key = message.attempts, message.key
    task = RunTask("outbox", message.target, fields, {}, {}, attempt, key, message.auth or None)
    context = TaskContext(DetachedRun(shared, RunInfo(message.execution_id, "outbox")), task)
    context.know(task.auth)
    if message.target == "http":
        run = shared.tools.runner("http")
        assert run is not None
        return await run_tool(run, fields, context)
    target = _package_targets().get(message.target)
    if target is None:
        known = ", ".join(["http", *_package_targets()])
        text = f"unknown outbox target `{message.target}`; known: {known}"
        return failed("client_error", text, code="NO_TARGET")
    return await target(message, context)
