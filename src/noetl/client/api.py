"""`noetl.Client`: the HTTP API of a server as typed coroutines.

    async with Client("http://127.0.0.1:8082", token) as noetl:
        started = await noetl.execute("examples/hello", {"name": "Ada"})
        ended = await noetl.wait(started.execution_id)

Errors are those of `noetl.model.errors`, with the text of the server. Tested in tests/client/test_api.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec

from noetl.client.http import Http, Servers
from noetl.model.errors import StoreUnavailable
from noetl.model.events import Event
from noetl.wire import answers
from noetl.wire.answers import (
    AuditLinks,
    AuditRow,
    AuditRows,
    AuditVerified,
    CatalogPage,
    CatalogVersion,
    CredentialDetail,
    CredentialRow,
    CredentialRows,
    CredentialTested,
    Events,
    Execution,
    Executions,
    Explained,
    Forked,
    KeychainEntries,
    PoolRows,
    Registered,
    Removed,
    Started,
    StartedMany,
    State,
    TokenMade,
    TokenRow,
    TokenRows,
    Told,
    UiSchema,
    Versions,
    WorkerRow,
    WorkerRows,
    WorkerStatus,
)
from noetl.wire.letters import Discarded, Letter, LetterGroup, LetterGroups, Letters, Replayed
from noetl.wire.outbox import OutboxNumber, OutboxRow, OutboxRows
from noetl.wire.people import GroupRow, GroupRows, Me, UserRow, UserRows
from noetl.wire.screens.compare import LAST_GOOD, Compared
from noetl.wire.screens.overview import Overview
from noetl.wire.triggers.ended import TriggerRow, TriggerRows
from noetl.wire.triggers.notifications import NotificationRow, NotificationRows, NotificationTested
from noetl.wire.triggers.schedules import BackfillMade, FiringRows, NextRuns, Progress, ScheduleRow, ScheduleRows
from noetl.wire.triggers.subscriptions import SubscriptionRow, SubscriptionRows, SubscriptionTested
from noetl.wire.triggers.webhooks import Delivered, WebhookRow, WebhookRows

T = TypeVar("T")
_DLQ: Final = "/api/dlq"
_PAGE: Final = 1_000
_AGAIN_S: Final = (0.0, 0.1, 0.5, 1.0, 2.0)
_MOST_TRIES: Final = 60  # about two minutes


class Client:
    """Client of one server, or of several on one store, with failover."""

    def __init__(self, server: str | Sequence[str], token: str | None = None) -> None:
        servers = [part for part in server.split(",") if part.strip()] if isinstance(server, str) else server
        self._http = Http(Servers(servers), token)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()

    async def register(
        self, content: str, *, check_only: bool = False, expected: int | None = None, tolerant: bool = False
    ) -> Registered:
        """Validate the text of a playbook and register it in the catalog.

        Raises Conflict if the latest version is not the `expected` one; 0: there is none. With `tolerant`, unknown
        keys are warnings, and are left out.
        """
        asked = {"content": content, "check_only": check_only, "expected": expected}
        asked |= {"tolerant": True} if tolerant else {}
        return await self._http.ask("POST", "/api/catalog", Registered, asked)

    async def playbooks(self, search: str | None = None, cursor: str | None = None, limit: int = 100) -> CatalogPage:
        """List the catalog by path."""
        query = _given(search=search, cursor=cursor, limit=limit)
        return await self._http.ask("GET", "/api/catalog", CatalogPage, query=query)

    async def playbook(self, path: str, version: int | None = None) -> CatalogVersion:
        """Return a version of a playbook with its text."""
        query = _given(path=path, version=version)
        return await self._http.ask("GET", "/api/catalog/playbook", CatalogVersion, query=query)

    async def ui_schema(self, path: str, version: int | None = None) -> UiSchema:
        """Return the JSON Schema and the defaults of a playbook's workload."""
        query = _given(path=path, version=version)
        return await self._http.ask("GET", "/api/catalog/ui_schema", UiSchema, query=query)

    async def versions(self, path: str) -> list[CatalogVersion]:
        """List the versions of a path, the newest first."""
        return (await self._http.ask("GET", "/api/catalog/versions", Versions, query={"path": path})).versions

    async def unregister(self, path: str, version: int | None = None) -> Removed:
        """Remove a version from the catalog, or all versions of a path."""
        return await self._http.ask("DELETE", "/api/catalog", Removed, query=_given(path=path, version=version))

    async def canonical(self, playbook: str) -> bytes:
        """Return the canonical tree of a content hash."""
        return (await self._http.send("GET", _path("playbooks", playbook))).content

    async def execute(
        self,
        path: str | None = None,
        payload: Mapping[str, Any] | None = None,
        *,
        version: int | None = None,
        playbook: str | None = None,
        content: str | None = None,
        tags: Sequence[str] = (),
        priority: int = 0,
        idempotency_key: str | None = None,
        trace: str | None = None,
        wait_ms: int | None = None,
    ) -> Started:
        """Start an execution of a path in the catalog, a content hash, or a text.

        With `wait_ms`, return when the execution has ended, or after that time (at most 30,000).
        """
        body = _given(path=path, version=version, playbook=playbook, content=content, trace=trace, wait_ms=wait_ms)
        body |= {"payload": dict(payload or {}), "tags": list(tags), "priority": priority}
        return await self._http.ask("POST", "/api/execute", Started, body, headers=_keyed(idempotency_key))

    async def execute_many(
        self,
        path: str | None = None,
        payloads: Sequence[Mapping[str, Any]] = (),
        *,
        version: int | None = None,
        playbook: str | None = None,
        content: str | None = None,
        tags: Sequence[str] = (),
        priority: int = 0,
        idempotency_key: str | None = None,
        trace: str | None = None,
        wait_ms: int | None = None,
    ) -> StartedMany:
        """Start an execution for each of 1 to 1,000 payloads by one request.

        If a payload is invalid, none starts. Those beyond a limit with `on_limit: reject` have the status `rejected` and an
        error; if that is each of them, raises Conflict. With `wait_ms`, return when all have ended, or after that time.
        """
        body = _given(path=path, version=version, playbook=playbook, content=content, trace=trace, wait_ms=wait_ms)
        body |= {"payloads": [dict(payload) for payload in payloads], "tags": list(tags), "priority": priority}
        return await self._http.ask("POST", "/api/execute/many", StartedMany, body, headers=_keyed(idempotency_key))

    async def executions(
        self,
        *,
        status: Sequence[str] = (),
        path: str | None = None,
        search: str | None = None,
        tag: str | None = None,
        parent: str | None = None,
        since: int | None = None,
        until: int | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> Executions:
        """List executions, the newest first; times are Unix milliseconds."""
        times = _given(since=since, until=until)
        query = _given(path=path, search=search, tag=tag, parent=parent, cursor=cursor, limit=limit) | times
        query |= {"status": list(status)} if status else {}
        return await self._http.ask("GET", "/api/executions", Executions, query=query)

    async def status(self, execution_id: str) -> Execution:
        """Return an execution in detail."""
        return await self._http.ask("GET", _path("executions", execution_id), Execution)

    async def wait(self, execution_id: str) -> Execution:
        """Wait until an execution has ended."""
        async with aclosing(self.follow(execution_id, types=("playbook.*", "execution.cancelled"))) as events:
            async for _ in events:
                pass
        return await self.status(execution_id)

    async def events(
        self, execution_id: str, after: int = 0, *, types: Sequence[str] = (), limit: int | None = None
    ) -> list[Event]:
        """Return the events of an execution after an event, at most `limit`."""
        found: list[Event] = []
        at: int | None = after
        while at is not None and (limit is None or len(found) < limit):
            size = _PAGE if limit is None else min(_PAGE, limit - len(found))
            query = {"after": at, "limit": size} | ({"type": list(types)} if types else {})
            page = await self._http.ask("GET", _path("executions", execution_id, "events"), Events, query=query)
            found += [_event(row) for row in page.events]
            at = page.next
        return found

    async def follow(
        self, execution_id: str, after: int = 0, *, types: Sequence[str] = ()
    ) -> AsyncGenerator[Event, None]:
        """Yield events until the execution has ended; reconnect on errors.

        After the first event, an outage of about two minutes is tolerated; before it, the error is raised soon.
        """
        tries, most = 0, len(_AGAIN_S)
        while True:
            try:
                async with aclosing(self._stream(execution_id, after, types)) as events:
                    async for event in events:
                        if event is None:
                            return
                        after, tries, most = event.seq, 0, _MOST_TRIES
                        yield event
            except StoreUnavailable:
                if tries >= most:
                    raise
            await asyncio.sleep(_AGAIN_S[min(tries, len(_AGAIN_S) - 1)])
            tries += 1

    async def _stream(self, execution_id: str, after: int, types: Sequence[str]) -> AsyncGenerator[Event | None, None]:
        query = {"after": after} | ({"type": list(types)} if types else {})
        headers = {"Accept": "text/event-stream"}
        named = ""
        async with self._http.stream(_path("executions", execution_id, "events/stream"), query, headers) as answer:
            async for line in answer.aiter_lines():
                key, _, text = line.partition(": ")
                if key == "event":
                    named = text
                elif key == "data" and named == "end":
                    yield None
                elif key == "data":
                    yield msgspec.json.decode(text, type=Event)

    async def state(self, execution_id: str, seq: int | None = None, diff: int | None = None) -> State:
        """Return the state after any event, or the changes between two events."""
        return await self._http.ask(
            "GET", _path("executions", execution_id, "state"), State, query=_given(seq=seq, diff=diff)
        )

    async def explain(self, execution_id: str) -> Explained:
        """Explain the current state of an execution."""
        return await self._http.ask("GET", _path("executions", execution_id, "explain"), Explained)

    async def compare(self, execution_id: str, other: str = LAST_GOOD) -> Compared:
        """Compare an execution with another, or with the last good one of its path."""
        return await self._http.ask(
            "GET", _path("executions", execution_id, "compare"), Compared, query={"with": other}
        )

    async def cancel(
        self,
        execution_id: str,
        reason: str = "",
        run: str | None = None,
        *,
        compensate: bool = False,
        abandon: bool = False,
    ) -> Told:
        """Cancel an execution or a step-run; `abandon` also stops compensation."""
        asked = {"reason": reason, "run": run, "compensate": compensate, "abandon": abandon}
        return await self._http.ask("POST", _path("executions", execution_id, "cancel"), Told, asked)

    async def pause(self, execution_id: str) -> Told:
        """Pause an execution: running steps finish, no new ones start."""
        return await self._http.ask("POST", _path("executions", execution_id, "pause"), Told, {})

    async def resume(self, execution_id: str) -> Told:
        """Resume a paused execution."""
        return await self._http.ask("POST", _path("executions", execution_id, "resume"), Told, {})

    async def signal(self, execution_id: str, name: str, data: Any = None, idempotency_key: str | None = None) -> Told:
        """Send a signal; idempotent with a key."""
        body = {"name": name, "data": data}
        return await self._http.ask(
            "POST", _path("executions", execution_id, "signal"), Told, body, headers=_keyed(idempotency_key)
        )

    async def patch(self, execution_id: str, writes: Mapping[str, Any]) -> Told:
        """Change values in `ctx`."""
        return await self._http.ask("PATCH", _path("executions", execution_id, "ctx"), Told, {"writes": dict(writes)})

    async def complete(self, execution_id: str, step: str, result: Any = None, reason: str = "") -> Told:
        """Complete a step without its work."""
        path = f"/api/admin/executions/{quote(execution_id, safe='')}/steps/{quote(step, safe='')}/force-complete"
        return await self._http.ask("POST", path, Told, {"result": result, "reason": reason})

    async def delete(self, execution_id: str) -> Told:
        """Delete an ended execution and its log."""
        return await self._http.ask("DELETE", _path("executions", execution_id), Told)

    async def fork(
        self,
        execution_id: str,
        start: str,
        *,
        ctx: Mapping[str, Any] | None = None,
        workload: Mapping[str, Any] | None = None,
        playbook: str | None = None,
    ) -> Forked:
        """Start a new execution from before a step's last run, or after an event."""
        body = {"start": start, "ctx": dict(ctx or {}), "workload": dict(workload or {}), "playbook": playbook}
        return await self._http.ask("POST", _path("executions", execution_id, "fork"), Forked, body)

    async def retry(self, execution_id: str, step: str | None = None, *, latest: bool = False) -> Forked:
        """Continue from the failed step in a new execution."""
        return await self._http.ask(
            "POST", _path("executions", execution_id, "retry"), Forked, {"step": step, "latest": latest}
        )

    async def result(self, ref: str) -> bytes:
        """Return the bytes of a stored result."""
        return (await self._http.send("GET", "/api/results/resolve", query={"ref": ref})).content

    async def workers(self) -> list[WorkerRow]:
        """List the workers."""
        return (await self._http.ask("GET", "/api/workers", WorkerRows)).workers

    async def finished(self, worker_id: str) -> list[answers.FinishedRun]:
        """List the last 20 step-runs that a worker ended, newest first."""
        return (await self._http.ask("GET", _path("workers", worker_id, "finished"), answers.FinishedRuns)).runs

    async def drain(self, worker_id: str) -> WorkerStatus:
        """Drain a worker: it finishes its work and takes no more."""
        return await self._http.ask("POST", _path("workers", worker_id, "drain"), WorkerStatus, {})

    async def pools(self) -> list[answers.PoolRow]:
        """List the pools with their workers and queues."""
        return (await self._http.ask("GET", "/api/pools", PoolRows)).pools

    async def queue(self) -> answers.QueueState:
        """Return what waits by pool, flow and limit."""
        return await self._http.ask("GET", "/api/queue", answers.QueueState)

    async def line(self, execution_id: str) -> answers.LineRow:
        """Return where an execution and its queued work stand in the queue."""
        return await self._http.ask("GET", _path("executions", execution_id, "line"), answers.LineRow)

    async def credentials(self) -> list[CredentialRow]:
        """List credentials without their data."""
        return (await self._http.ask("GET", "/api/credentials", CredentialRows)).credentials

    async def credential(self, name: str) -> CredentialDetail:
        """Return a credential with the names of its fields and its use, without values."""
        return await self._http.ask("GET", _path("credentials", name), CredentialDetail)

    async def test_credential(self, name: str, url: str | None = None) -> CredentialTested:
        """Connect with a credential, from the server; `url` is for types of `http`."""
        path = _path("credentials", name, "test")
        return await self._http.ask("POST", path, CredentialTested, {"url": url})

    async def put_credential(self, name: str, data: Mapping[str, Any], kind: str = "generic") -> CredentialRow:
        """Store a credential; one with the same name is replaced."""
        path = _path("credentials", name)
        return await self._http.ask("PUT", path, CredentialRow, {"data": dict(data), "kind": kind})

    async def delete_credential(self, name: str) -> Removed:
        return await self._http.ask("DELETE", _path("credentials", name), Removed)

    async def outbox(self, state: str | None = None, *, before: int | None = None, limit: int = 50) -> OutboxRows:
        """List outbox messages, the newest first."""
        return await self._http.ask(
            "GET", "/api/outbox", OutboxRows, query=_given(state=state, before=before, limit=limit)
        )

    async def outbox_message(self, number: int) -> OutboxRow:
        """Return an outbox message with its payload."""
        return await self._http.ask("GET", f"/api/outbox/{number}", OutboxRow)

    async def retry_message(self, number: int) -> OutboxNumber:
        """Retry a dead or pending outbox message now."""
        return await self._http.ask("POST", f"/api/outbox/{number}/retry", OutboxNumber, {})

    async def discard_message(self, number: int, reason: str) -> OutboxNumber:
        """Discard a dead or pending outbox message."""
        return await self._http.ask("POST", f"/api/outbox/{number}/discard", OutboxNumber, {"reason": reason})

    async def _page(self, noun: str, kind: type[T], path: str | None, cursor: str | None, limit: int) -> T:
        query = _given(path=path, cursor=cursor, limit=limit)
        return await self._http.ask("GET", f"/api/{noun}", kind, query=query)

    async def schedules(self, path: str | None = None, *, cursor: str | None = None, limit: int = 100) -> ScheduleRows:
        """List schedules by id."""
        return await self._page("schedules", ScheduleRows, path, cursor, limit)

    async def schedule(self, schedule_id: str) -> ScheduleRow:
        """Return a schedule."""
        return await self._http.ask("GET", _path("schedules", schedule_id), ScheduleRow)

    async def create_schedule(self, /, name: str, path: str, **fields: Any) -> ScheduleRow:
        """Create a schedule of a playbook: with `cron`, `every` or `calendar`."""
        return await self._http.ask("POST", "/api/schedules", ScheduleRow, {"name": name, "path": path, **fields})

    async def change_schedule(self, /, schedule_id: str, **fields: Any) -> ScheduleRow:
        """Change fields of a schedule."""
        return await self._http.ask("PATCH", _path("schedules", schedule_id), ScheduleRow, fields)

    async def pause_schedule(self, schedule_id: str) -> ScheduleRow:
        """Pause a schedule: nothing fires until it is resumed."""
        return await self._http.ask("POST", _path("schedules", schedule_id, "pause"), ScheduleRow, {})

    async def resume_schedule(self, schedule_id: str) -> ScheduleRow:
        """Resume a paused schedule."""
        return await self._http.ask("POST", _path("schedules", schedule_id, "resume"), ScheduleRow, {})

    async def backfill(self, /, schedule_id: str, since: int, until: int, **options: Any) -> BackfillMade:
        """Start the executions of past times of a schedule."""
        body = {"since": since, "until": until, **options}
        return await self._http.ask("POST", _path("schedules", schedule_id, "backfill"), BackfillMade, body)

    async def progress(self, schedule_id: str) -> Progress:
        """Count the firings of a schedule by what became of them."""
        return await self._http.ask("GET", _path("schedules", schedule_id, "progress"), Progress)

    async def delete_schedule(self, schedule_id: str) -> Removed:
        """Delete a schedule and its firings."""
        return await self._http.ask("DELETE", _path("schedules", schedule_id), Removed)

    async def webhooks(self, path: str | None = None, *, cursor: str | None = None, limit: int = 100) -> WebhookRows:
        """List webhooks by id."""
        return await self._page("webhooks", WebhookRows, path, cursor, limit)

    async def webhook(self, webhook_id: str) -> WebhookRow:
        """Return a webhook."""
        return await self._http.ask("GET", _path("webhooks", webhook_id), WebhookRow)

    async def create_webhook(self, /, name: str, path: str, auth: str, credential: str, **fields: Any) -> WebhookRow:
        """Create a webhook of a playbook."""
        body = {"name": name, "path": path, "auth": auth, "credential": credential, **fields}
        return await self._http.ask("POST", "/api/webhooks", WebhookRow, body)

    async def pause_webhook(self, webhook_id: str) -> WebhookRow:
        """Pause a webhook: deliveries are refused until it is resumed."""
        return await self._http.ask("POST", _path("webhooks", webhook_id, "pause"), WebhookRow, {})

    async def resume_webhook(self, webhook_id: str) -> WebhookRow:
        """Resume a paused webhook."""
        return await self._http.ask("POST", _path("webhooks", webhook_id, "resume"), WebhookRow, {})

    async def delete_webhook(self, webhook_id: str) -> Removed:
        """Delete a webhook."""
        return await self._http.ask("DELETE", _path("webhooks", webhook_id), Removed)

    async def test_webhook(self, /, webhook_id: str, body: str, **fields: Any) -> Delivered:
        """Have the server sign and receive a delivery: a real start."""
        return await self._http.ask("POST", _path("webhooks", webhook_id, "test"), Delivered, {"body": body, **fields})

    async def triggers(self, path: str | None = None, *, cursor: str | None = None, limit: int = 100) -> TriggerRows:
        """List triggers of ended executions by id."""
        return await self._page("triggers", TriggerRows, path, cursor, limit)

    async def trigger(self, trigger_id: str) -> TriggerRow:
        """Return a trigger."""
        return await self._http.ask("GET", _path("triggers", trigger_id), TriggerRow)

    async def create_trigger(self, /, name: str, path: str, after: str, **fields: Any) -> TriggerRow:
        """Create a trigger that starts a playbook when executions end."""
        body = {"name": name, "path": path, "after": after, **fields}
        return await self._http.ask("POST", "/api/triggers", TriggerRow, body)

    async def pause_trigger(self, trigger_id: str) -> TriggerRow:
        """Pause a trigger: ends of executions start nothing until it is resumed."""
        return await self._http.ask("POST", _path("triggers", trigger_id, "pause"), TriggerRow, {})

    async def resume_trigger(self, trigger_id: str) -> TriggerRow:
        """Resume a paused trigger."""
        return await self._http.ask("POST", _path("triggers", trigger_id, "resume"), TriggerRow, {})

    async def delete_trigger(self, trigger_id: str) -> Removed:
        """Delete a trigger."""
        return await self._http.ask("DELETE", _path("triggers", trigger_id), Removed)

    async def notifications(
        self, path: str | None = None, *, cursor: str | None = None, limit: int = 100
    ) -> NotificationRows:
        """List notifications by id."""
        return await self._page("notifications", NotificationRows, path, cursor, limit)

    async def notification(self, notification_id: str) -> NotificationRow:
        """Return a notification."""
        return await self._http.ask("GET", _path("notifications", notification_id), NotificationRow)

    async def create_notification(
        self, /, name: str, path: str, on: Sequence[str], channel: str, **fields: Any
    ) -> NotificationRow:
        """Create a notification for the executions of a path or a namespace."""
        body = {"name": name, "path": path, "on": list(on), "channel": channel, **fields}
        return await self._http.ask("POST", "/api/notifications", NotificationRow, body)

    async def pause_notification(self, notification_id: str) -> NotificationRow:
        """Pause a notification: nothing is sent until it is resumed."""
        return await self._http.ask("POST", _path("notifications", notification_id, "pause"), NotificationRow, {})

    async def resume_notification(self, notification_id: str) -> NotificationRow:
        """Resume a paused notification."""
        return await self._http.ask("POST", _path("notifications", notification_id, "resume"), NotificationRow, {})

    async def delete_notification(self, notification_id: str) -> Removed:
        """Delete a notification."""
        return await self._http.ask("DELETE", _path("notifications", notification_id), Removed)

    async def test_notification(self, notification_id: str) -> NotificationTested:
        """Put a test message of a notification in the outbox."""
        return await self._http.ask("POST", _path("notifications", notification_id, "test"), NotificationTested, {})

    async def subscriptions(
        self, path: str | None = None, *, cursor: str | None = None, limit: int = 100
    ) -> SubscriptionRows:
        """List subscriptions by id."""
        return await self._page("subscriptions", SubscriptionRows, path, cursor, limit)

    async def subscription(self, subscription_id: str) -> SubscriptionRow:
        """Return a subscription, and how far it got."""
        return await self._http.ask("GET", _path("subscriptions", subscription_id), SubscriptionRow)

    async def create_subscription(self, /, name: str, path: str, source: str, **fields: Any) -> SubscriptionRow:
        """Create a subscription of a playbook."""
        body = {"name": name, "path": path, "source": source, **fields}
        return await self._http.ask("POST", "/api/subscriptions", SubscriptionRow, body)

    async def pause_subscription(self, subscription_id: str) -> SubscriptionRow:
        """Pause a subscription: its source is not polled until it is resumed."""
        return await self._http.ask("POST", _path("subscriptions", subscription_id, "pause"), SubscriptionRow, {})

    async def resume_subscription(self, subscription_id: str) -> SubscriptionRow:
        """Resume a paused subscription where it was."""
        return await self._http.ask("POST", _path("subscriptions", subscription_id, "resume"), SubscriptionRow, {})

    async def delete_subscription(self, subscription_id: str) -> Removed:
        """Delete a subscription and its position."""
        return await self._http.ask("DELETE", _path("subscriptions", subscription_id), Removed)

    async def test_subscription(self, subscription_id: str) -> SubscriptionTested:
        """Poll a source once; nothing starts, and nothing moves."""
        return await self._http.ask("POST", _path("subscriptions", subscription_id, "test"), SubscriptionTested, {})

    async def next_runs(self, schedule_id: str, count: int = 10) -> NextRuns:
        """Return the next times of a schedule."""
        return await self._http.ask("GET", _path("schedules", schedule_id, "next"), NextRuns, query={"count": count})

    async def firings(self, schedule_id: str, *, before: int | None = None, limit: int = 50) -> FiringRows:
        """List the firings of a schedule, the newest first."""
        query = _given(before=before, limit=limit)
        return await self._http.ask("GET", _path("schedules", schedule_id, "firings"), FiringRows, query=query)

    async def keychain(
        self, path: str | None = None, *, execution_id: str | None = None, version: int | None = None
    ) -> KeychainEntries:
        """List the keychain of a playbook or an execution, without secrets."""
        query = _given(path=path, execution_id=execution_id, version=version)
        return await self._http.ask("GET", "/api/keychain", KeychainEntries, query=query)

    async def audit(self, *, actor: str | None = None, entity: str | None = None, limit: int = 100) -> list[AuditRow]:
        """List audit entries, the newest first."""
        query = _given(actor=actor, entity=entity, limit=limit)
        return (await self._http.ask("GET", "/api/audit", AuditRows, query=query)).entries

    async def audit_chain(self, after: int = 0, limit: int = 100) -> AuditLinks:
        """List audit entries with their hashes, in the order of the hash chain."""
        return await self._http.ask("GET", "/api/audit/export", AuditLinks, query=_given(after=after, limit=limit))

    async def verify_audit(self, expect: str | None = None) -> AuditVerified:
        """Verify the hash chain of the audit trail on the server."""
        return await self._http.ask("GET", "/api/audit/verify", AuditVerified, query=_given(expect=expect))

    async def tokens(self) -> list[TokenRow]:
        """List tokens without their secrets."""
        return (await self._http.ask("GET", "/api/tokens", TokenRows)).tokens

    async def data_keys(self) -> answers.DataKeyRows:
        """List the keys that seal credentials, without any key."""
        return await self._http.ask("GET", "/api/keys", answers.DataKeyRows)

    async def rotate_keys(self) -> answers.KeysRotated:
        """Wrap every data key with the first master key of the server."""
        return await self._http.ask("POST", "/api/keys/rotate", answers.KeysRotated, {})

    async def create_token(
        self,
        role: str,
        name: str = "",
        expires_s: int | None = None,
        pool: str | None = None,
        namespaces: Sequence[str] = (),
    ) -> TokenMade:
        """Create a token; only this answer holds its secret."""
        body = {"role": role, "name": name, "expires_s": expires_s, "pool": pool, "namespaces": list(namespaces)}
        return await self._http.ask("POST", "/api/tokens", TokenMade, body)

    async def overview(self) -> Overview:
        """Return counts, what needs a person, pools and the newest executions."""
        return await self._http.ask("GET", "/api/overview", Overview)

    async def metrics(self) -> str:
        """Return the metrics of the server in the text format of Prometheus."""
        return (await self._http.send("GET", "/metrics")).content.decode()

    async def health(self) -> answers.Health:
        """Return status, version and time of the server."""
        return await self._http.ask("GET", "/health", answers.Health)

    async def ready(self) -> answers.Health:
        """Check that the server can work. Raises StoreUnavailable with the reason."""
        return await self._http.ask("GET", "/ready", answers.Health)

    async def me(self) -> Me:
        """Return who the caller is, with roles and namespaces."""
        return await self._http.ask("GET", "/api/me", Me)

    async def users(self) -> list[UserRow]:
        """List users, without passwords."""
        return (await self._http.ask("GET", "/api/users", UserRows)).users

    async def create_user(
        self, name: str, password: str = "", grants: Sequence[Mapping[str, str]] = (), groups: Sequence[str] = ()
    ) -> UserRow:
        body = {"name": name, "password": password, "grants": list(grants), "groups": list(groups)}
        return await self._http.ask("POST", "/api/users", UserRow, body)

    async def change_user(self, name: str, fields: Mapping[str, Any]) -> UserRow:
        """Change `password`, `grants`, `groups` or `disabled` of a user."""
        return await self._http.ask("PATCH", _path("users", name), UserRow, dict(fields))

    async def delete_user(self, name: str) -> Removed:
        return await self._http.ask("DELETE", _path("users", name), Removed)

    async def groups(self) -> list[GroupRow]:
        """List groups with their roles and members."""
        return (await self._http.ask("GET", "/api/groups", GroupRows)).groups

    async def put_group(self, name: str, grants: Sequence[Mapping[str, str]] = ()) -> GroupRow:
        """Create a group, or replace its roles."""
        return await self._http.ask("PUT", _path("groups", name), GroupRow, {"grants": list(grants)})

    async def delete_group(self, name: str) -> Removed:
        return await self._http.ask("DELETE", _path("groups", name), Removed)

    async def revoke_token(self, token_id: str) -> Removed:
        return await self._http.ask("DELETE", _path("tokens", token_id), Removed)

    async def letters(
        self,
        /,
        *,
        status: Sequence[str] = ("pending",),
        cursor: str | None = None,
        limit: int = 100,
        **asked: str | None,
    ) -> Letters:
        """List dead letters by `group`, `execution_id`, `path`, `step`, `kind`."""
        query = _given(status=list(status), cursor=cursor, limit=limit, **asked)
        return await self._http.ask("GET", _DLQ, Letters, query=query)

    async def letter_groups(
        self, /, *, status: Sequence[str] = ("pending",), limit: int = 100, **asked: str | None
    ) -> list[LetterGroup]:
        """List dead letters grouped by cause."""
        query = _given(status=list(status), limit=limit, **asked)
        return (await self._http.ask("GET", f"{_DLQ}/groups", LetterGroups, query=query)).groups

    async def letter(self, message_id: str) -> Letter:
        """Return a dead letter in detail."""
        return await self._http.ask("GET", _path("dlq", message_id), Letter)

    async def replay_letter(
        self,
        message_id: str,
        patch: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        idempotency_key: str | None = None,
    ) -> Replayed:
        """Replay a dead letter."""
        body = {"patch": dict(patch or {}), "dry_run": dry_run}
        return await self._http.ask(
            "POST", _path("dlq", message_id, "replay"), Replayed, body, headers=_keyed(idempotency_key)
        )

    async def replay_letters(
        self,
        /,
        *,
        patch: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        everything: bool = False,
        idempotency_key: str | None = None,
        **asked: str | None,
    ) -> Replayed:
        """Replay pending letters by `group`, `execution_id`, `path`, `step`, `kind`."""
        body = {"patch": dict(patch or {}), "dry_run": dry_run, "all": everything, **_given(**asked)}
        return await self._http.ask("POST", f"{_DLQ}/replay", Replayed, body, headers=_keyed(idempotency_key))

    async def discard_letter(self, message_id: str, reason: str) -> Discarded:
        """Discard a dead letter: its work is not done."""
        return await self._http.ask("POST", _path("dlq", message_id, "discard"), Discarded, {"reason": reason})

    async def discard_letters(self, /, reason: str, *, everything: bool = False, **asked: str | None) -> Discarded:
        """Discard all pending letters that match."""
        body = {"reason": reason, "all": everything, **_given(**asked)}
        return await self._http.ask("POST", f"{_DLQ}/discard", Discarded, body)


def _path(noun: str, name: str, verb: str = "") -> str:
    return f"/api/{noun}/{quote(name, safe='')}" + (f"/{verb}" if verb else "")


def _keyed(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key} if key else {}


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _event(row: answers.EventRow) -> Event:
    return Event(**{name: getattr(row, name) for name in Event.__struct_fields__})
