"""Composition root of the outbox: its table, the relay and the targets.

The `http` tool delivers `http` and `webhook` messages, with its timeouts, credentials and limits; the address of a `webhook` is
the `url` of its credential. Messages to `smtp` are e-mails. A package adds a target as a coroutine function in the entry point
group `noetl.outbox`, which takes the message and the `ToolContext` and returns an outcome. Tested in
tests/acceptance/admin/test_outbox_cli.py, tests/unit/server/background/test_outbox_relay.py and tests/server/api/triggers/test_notifications.py.
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
from noetl.triggers.notification import address_in
from noetl.worker.http.clients import HttpClient
from noetl.worker.http.egress import Egress
from noetl.worker.tool_context import DetachedRun, TaskContext, WorkerResources

GROUP = "noetl.outbox"
_HTTP = "http"
_WEBHOOK = "webhook"
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
    egress: Egress | None = None,
) -> AsyncIterator[OutboxRelay]:
    """Open the relay of a store; the caller runs or drains it. `tools` are the kinds."""
    delivery, unused = settings.outbox, cast(Any, None)
    known = (cast(Tools, tools), cast(Kinds, tools))
    shared = WorkerResources(
        unused, *known, clock, unused, unused, client.get, credential, folder=os.getcwd(), egress=egress
    )

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
def _targets() -> Mapping[str, Target]:
    """Return the targets besides HTTP by name; those of packages come last."""
    from noetl.worker.mail import send_mail

    return {"smtp": send_mail, **{found.name: cast(Target, found.load()) for found in entry_points(group=GROUP)}}


async def _deliver(message: OutboxMessage, shared: WorkerResources, settings: OutboxSettings) -> Outcome:
    attempt, key, is_secret = message.attempts, message.key, message.target == _WEBHOOK
    auth = None if is_secret else message.auth or None
    task = RunTask("outbox", message.target, {}, {}, {}, attempt, key, auth)
    context = TaskContext(DetachedRun(shared, RunInfo(message.execution_id, "outbox")), task)
    context.know(task.auth)
    if message.target in (_HTTP, _WEBHOOK):
        address = await _address(message, context, settings)
        return address if isinstance(address, Outcome) else await _post(message, address, shared, context)
    target = _targets().get(message.target)
    if target is None:
        known = ", ".join([_HTTP, _WEBHOOK, *_targets()])
        text = f"unknown outbox target `{message.target}`; known: {known}"
        return failed("client_error", text, code="NO_TARGET")
    return await target(message, context)


async def _address(message: OutboxMessage, context: ToolContext, settings: OutboxSettings) -> str | Outcome:
    """Return the URL of a message, or why there is none."""
    if message.target == _HTTP:
        address = message.address or (settings.url and f"{settings.url.rstrip('/')}/{quote(message.topic, safe='')}")
        text = "the message has no address, and NOETL_OUTBOX_URL is not set"
        return address or failed("client_error", text, code="NO_ADDRESS")
    try:
        found = address_in(await context.credential(message.auth))
    except KeyError as error:
        return failed("auth", f"unknown credential {error}", code="NO_CREDENTIAL")
    return found or failed("client_error", f"the credential `{message.auth}` has no `url`", code="NO_ADDRESS")


async def _post(message: OutboxMessage, address: str, shared: WorkerResources, context: ToolContext) -> Outcome:
    topic = {"X-NoETL-Topic": message.topic} if message.topic else {}
    headers = {**topic, **message.headers}
    fields: dict[str, Any] = {"method": "POST", "url": address, "headers": headers, "json": message.payload}
    if message.payload is None:
        del fields["json"]
    run = shared.tools.runner(_HTTP)
    assert run is not None
    return await run_tool(run, fields, context)
