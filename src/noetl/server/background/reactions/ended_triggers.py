"""Start playbooks when executions end: once for each trigger and ended execution.

Each start has a request key made of the trigger and the ended execution, so a page of the feed that is read again, by this
server or another, starts nothing twice, and a crash loses nothing. A chain of such starts ends after a few, so playbooks that
start each other stop. Tested in tests/conformance/test_ended_triggers.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from noetl.model.errors import Conflict, InvalidInput, LimitReached
from noetl.model.events import Event
from noetl.model.messages import AnyMessage, Start
from noetl.model.refs import expanded
from noetl.observe.engine_counts import EngineCounts
from noetl.ports import Audit, AuditEntry, AuditTrail, Catalog, Clock, EventLog, IdempotencyKeys
from noetl.ports.triggers import StoredTrigger, Triggers
from noetl.server.background.reactions.trigger_feed import Duties, TriggerFeed
from noetl.server.cache.ids import is_started_by, key_name, new_execution
from noetl.triggers.ended import MOST_CHAIN, EndedSpec, chain_of, tags_of
from noetl.triggers.stored import read_spec

KIND: Final = "ended"
_log = logging.getLogger(__name__)
_FINISHED: Final = "playbook.finished"
_MOST_PARENTS: Final = 64
_FACTS: Final = ("path", "status", "tags", "started_at", "ended_at")
Submit = Callable[[str, AnyMessage, Audit], Awaitable[Mapping[str, Any]]]
Render = Callable[[Any, Mapping[str, Any]], Awaitable[Any]]  # raises InvalidInput


class Store(EventLog, Catalog, Protocol):
    """A log and a catalog."""


class Team(IdempotencyKeys, AuditTrail, Protocol):
    """Request keys and the audit trail."""


class EndedTriggers:
    """Look for ended executions every second."""

    def __init__(
        self,
        triggers: Triggers,
        store: Store,
        team: Team,
        duties: Duties,
        submit: Submit,
        render: Render,
        clock: Clock,
        *,
        holder: str,
        every_s: float = 1.0,
        counts: EngineCounts | None = None,
    ) -> None:
        self._counts = counts or EngineCounts()
        self._store = store
        self._team = team
        self._submit = submit
        self._render = render
        self._clock = clock
        self._every_s = every_s
        self._feed = TriggerFeed(KIND, triggers, store, duties, clock, self._react, spec_of, holder=holder)

    async def run(self) -> None:
        """Start what ends demand until cancelled."""
        await self._feed.repeat(self.look, self._every_s)

    async def look(self) -> None:
        """Read the feed to its end, and start what the ends in it demand."""
        await self._feed.look(lambda _: (_FINISHED,))

    async def _react(self, triggers: list[StoredTrigger], event: Event) -> None:
        row = await self._store.execution(event.execution_id)
        if row is None:
            return  # it was deleted
        path, status, tags = str(row.get("path", "")), str(event.status), list(row.get("tags") or ())
        for trigger in triggers:
            spec = spec_of(trigger)
            is_older = event.timestamp < trigger.created_at
            if is_older or path == trigger.path or not spec.matches(path, status, tags):
                continue
            try:
                await self._start(trigger, spec, event, row)
            except (InvalidInput, LimitReached) as error:
                await self._refuse(trigger, event, str(error))

    async def _start(self, trigger: StoredTrigger, spec: EndedSpec, event: Event, row: Mapping[str, Any]) -> None:
        name, now = key_name(f"{KIND}\0{trigger.trigger_id}", event.execution_id), self._clock.now()
        execution_id = await self._team.keep_key(name, str(new_execution(now)), now, 0)
        message_id = f"{KIND}:{name}"
        first = await self._store.read(execution_id, 0, 1)
        if first:
            if not is_started_by(first[0], message_id):
                raise InvalidInput(f"The id {execution_id}, which was reserved, belongs to another execution.")
            return
        chain = await self._chain(row) + 1
        if chain > MOST_CHAIN:
            raise InvalidInput(f"More than {MOST_CHAIN} executions started each other by their ends.")
        playbook = await self._store.content_hash(trigger.path, trigger.version)
        if playbook is None:
            raise InvalidInput(f"The catalog has no `{trigger.path}`.")
        facts = ended_facts(event, row)
        payload = await self._render(dict(spec.payload), {"execution": facts}) if spec.payload else {"execution": facts}
        by = f"{KIND}:{trigger.trigger_id}"
        message = Start(message_id, trigger.path, playbook, payload, tags=tags_of(trigger.trigger_id, chain))
        detail = {"path": trigger.path, "playbook": playbook, "ended": event.execution_id}
        try:
            await self._submit(execution_id, message, AuditEntry(now, by, "execution.start", execution_id, detail))
        except LimitReached:
            raise
        except Conflict:
            if not await self._store.read(execution_id, 0, 1):
                raise
        self._counts.fired(KIND, (now - event.timestamp) / 1000)

    async def _chain(self, row: Mapping[str, Any]) -> int:
        """Return the length of the chain that led to an execution or its parents."""
        longest = chain_of(list(row.get("tags") or ()))
        above: Mapping[str, Any] | None = row
        for _ in range(_MOST_PARENTS):
            parent = above.get("parent") if above is not None else None
            above = await self._store.execution(str(parent)) if parent else None
            if above is None:
                break
            longest = max(longest, chain_of(list(above.get("tags") or ())))
        return longest

    async def _refuse(self, trigger: StoredTrigger, event: Event, why: str) -> None:
        _log.warning("Trigger %s started nothing after %s: %s", trigger.trigger_id, event.execution_id, why)
        detail = {"ended": event.execution_id, "reason": why[:2_000]}
        by = f"{KIND}:{trigger.trigger_id}"
        await self._team.audit([AuditEntry(self._clock.now(), by, "ended.refuse", trigger.trigger_id, detail)])


def spec_of(trigger: StoredTrigger) -> EndedSpec:
    """Return what a stored trigger holds. Raises InvalidInput."""
    return read_spec(trigger.spec, EndedSpec)


def ended_facts(event: Event, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return `execution` as templates of a trigger see it."""
    facts = {name: row.get(name) for name in _FACTS if row.get(name) is not None}
    result = expanded(event.payload.get("result"))
    more = {"status": event.status, "result": result, "error": event.payload.get("error")}
    return {"execution_id": event.execution_id, **facts, **more}
