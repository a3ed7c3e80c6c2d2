"""Notifications: put a message in the outbox for each event that one watches.

The key of a message is made of the notification, the event, and the execution, wait or dead letter, so a page of the feed that
is read again puts nothing twice, and a crash loses nothing. No event tells that an SLA is missed, or that a message of a
subscription is a dead letter: these are read from the store, and the time of the last look is a position too. The relay of
the outbox delivers the messages. Tested in tests/conformance/test_notifications.py and tests/server/api/triggers/test_notifications.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any, Final, Protocol
from uuid import uuid4

from msgspec.structs import replace

from noetl.engine.plan.plan import Plan
from noetl.engine.queries.decisions import expects_decision, gate_decisions
from noetl.engine.state.dead_letters import change_of, letter_id
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.ports import Clock, EventLog, Selection
from noetl.ports.letters import DeadLetters, LetterSelection
from noetl.ports.outbox import OutboxIn, OutboxMessage
from noetl.ports.triggers import StoredTrigger, Triggers
from noetl.server.background.reactions.trigger_feed import Duties, TriggerFeed
from noetl.server.background.subscriptions.poisoned import KIND as SUBSCRIPTION
from noetl.server.cache.ids import key_name
from noetl.triggers.notification import News, NotificationSpec, is_for, payload_of
from noetl.triggers.stored import read_spec

KIND: Final = "notification"
SLA: Final = "notification-sla"  # name of the position of the last look for what no event tells
_log = logging.getLogger(__name__)
_FINISHED: Final = "playbook.finished"
_LETTERS: Final = ("step.failed", "loop.iteration.failed", "next.evaluated", "message.poisoned")
_SUSPENDED: Final = "step.suspended"
_PARKED: Final = "token.parked"
_WANTED: Final[Mapping[str, tuple[str, ...]]] = {  # event of a notification → events of the log
    "failed": (_FINISHED,),
    "timeout": (_FINISHED,),
    "dead_letter": _LETTERS,
    "approval": (_SUSPENDED, _PARKED),
    "sla": (),
}
_ENDED: Final = ("completed", "failed", "cancelled", "partial")
_TARGETS: Final[Mapping[str, str]] = {"webhook": "webhook", "slack": "webhook", "email": "smtp"}
_PAGE: Final = 500
_OVERLAP_MS: Final = 60_000  # an execution may be written this much later than its start
_SLA_EVERY_MS: Final = 5_000
_LETTERS_PAGE: Final = 10  # they hold whole messages
_MOST_KEYS: Final = 10_000
GetPlan = Callable[[str], Awaitable[Plan]]  # raises InvalidInput
Mask = Callable[[Any], Any]


class Log(EventLog, DeadLetters, Protocol):
    """A log and its dead letters."""


class Notifications:
    """Look for events that notifications watch every second."""

    def __init__(
        self,
        triggers: Triggers,
        log: Log,
        outbox: OutboxIn,
        duties: Duties,
        plan: GetPlan,
        clock: Clock,
        *,
        holder: str,
        base: str = "",
        mask: Mask = lambda data: data,
        every_s: float = 1.0,
    ) -> None:
        self._triggers = triggers
        self._log = log
        self._outbox = outbox
        self._plan = plan
        self._clock = clock
        self._base = base  # public URL of the server
        self._mask = mask
        self._every_s = every_s
        self._feed = TriggerFeed(KIND, triggers, log, duties, clock, self._react, spec_of, holder=holder)
        self._put: dict[str, None] = {}  # keys of messages that this server has put

    async def run(self) -> None:
        """Put messages until cancelled."""
        await self._feed.repeat(self.look, self._every_s)

    async def look(self) -> None:
        """Read the feed to its end, then look for what no event tells."""
        found = await self._feed.look(_wanted)
        watching = [(one, spec) for one in found if not {"sla", "dead_letter"}.isdisjoint((spec := spec_of(one)).on)]
        if watching:
            await self._look_beside(watching)

    async def _react(self, triggers: list[StoredTrigger], event: Event) -> None:
        if not _may_matter(event):
            return
        row = await self._log.execution(event.execution_id)
        if row is None:
            return  # it was deleted
        path = str(row.get("path", ""))
        watching = [one for one in triggers if event.timestamp >= one.created_at and is_for(path, one.path)]
        if not watching:
            return
        for names, subject, news in await self._news(event, row, path):
            for trigger in watching:
                spec = spec_of(trigger)
                name = next((one for one in names if one in spec.on), None)
                if name is not None:
                    await self._tell(trigger, spec, name, subject, news)

    async def _news(
        self, event: Event, row: Mapping[str, Any], path: str
    ) -> list[tuple[tuple[str, ...], str, dict[str, Any]]]:
        """Return names of the event, the subject of its key, and what it says."""
        known = {"execution_id": event.execution_id, "path": path, "at": event.timestamp}
        if event.event_type == _FINISHED:
            error = event.payload.get("error") or {}
            names = ("timeout", "failed") if error.get("kind") == "timeout" else ("failed",)
            said = {"status": str(event.status), "error": _text(error.get("message"))}
            return [(names, event.execution_id, {**known, **said})]
        if event.event_type in _LETTERS:
            change = change_of(path, event)
            if change is None or change.letter is None or change.letter.replays:
                return []
            letter = change.letter
            said = {"letter_id": letter.message_id, "error": letter.last_error, "step": letter.step_id}
            subject = letter_id(event.execution_id, letter.run_id, None)  # once, however many items of a loop fail
            return [(("dead_letter",), subject, {**known, **said})]
        if row.get("status") in _ENDED:
            return []
        waits = await self._decisions(event, str(row.get("playbook", "")))
        return [
            (("approval",), f"{event.event_id}:{signal}", {**known, "signal": signal, "step": step})
            for step, signal in waits
        ]

    async def _decisions(self, event: Event, playbook: str) -> list[tuple[str, str]]:
        """Return step and signal of each decision that an event waits for."""
        try:
            plan = await self._plan(playbook)
        except InvalidInput as error:
            _log.warning("Execution %s notifies of no approval: %s", event.execution_id, error)
            return []
        if event.event_type == _PARKED:
            step = str(event.payload.get("step", ""))
            return [(step, signal) for signal in gate_decisions(plan, step)]
        step = event.entity_id
        return [(step, str(event.payload["signal"]))] if expects_decision(plan, step) else []

    async def _tell(
        self, trigger: StoredTrigger, spec: NotificationSpec, name: str, subject: str, said: Mapping[str, Any]
    ) -> None:
        key = f"{KIND}:{key_name(trigger.trigger_id, f'{trigger.created_at}:{name}:{subject}')}"
        if key in self._put:
            return
        news = News(name, **self._mask(said))
        await self._outbox.put(message_of(key, trigger, spec, news, self._base), self._clock.now())
        if len(self._put) >= _MOST_KEYS:
            self._put.clear()
        self._put[key] = None

    async def _look_beside(self, watching: list[tuple[StoredTrigger, NotificationSpec]]) -> None:
        """Look for missed SLAs and dead letters of subscriptions since the last look."""
        position, revision = await self._triggers.position(SLA)
        now, last = self._clock.now(), position.get("at", 0)
        if now - last < _SLA_EVERY_MS:
            return
        active = [  # what happens until a paused one is resumed is not told
            (one, spec, max(last - _OVERLAP_MS, one.created_at)) for one, spec in watching if not one.paused
        ]
        for trigger, spec, since in active:
            if "sla" in spec.on:
                await self._tell_missed(trigger, spec, since - spec.sla_ms, now - spec.sla_ms)
        await self._tell_letters([one for one in active if "dead_letter" in one[1].on])
        await self._triggers.advance(SLA, {"at": now}, revision)

    async def _tell_letters(self, active: list[tuple[StoredTrigger, NotificationSpec, int]]) -> None:
        """Send messages about dead letters of subscriptions, each since a time."""
        asked = LetterSelection(tool_kind=SUBSCRIPTION, limit=_LETTERS_PAGE)
        earliest = min((since for _, _, since in active), default=None)
        while earliest is not None and (page := await self._log.letters(asked)):
            for letter in page:
                if letter.first_seen < earliest:
                    return
                said = {"execution_id": "", "path": letter.path, "at": letter.first_seen, "error": letter.last_error}
                said |= {"letter_id": letter.message_id, "subscription": letter.step_id}
                for trigger, spec, since in active:
                    if letter.first_seen >= since and is_for(letter.path, trigger.path):
                        await self._tell(trigger, spec, "dead_letter", letter.message_id, said)
            asked = replace(asked, before=page[-1].message_id)

    async def _tell_missed(self, trigger: StoredTrigger, spec: NotificationSpec, since: int, until: int) -> None:
        """Send messages about executions of a period that took longer than the SLA."""
        asked = Selection(since=since, until=until, limit=_PAGE)
        while page := await self._log.executions(asked):
            for row in page:
                path, number, started = str(row.get("path", "")), str(row["execution_id"]), int(row["started_at"])
                ended = row.get("ended_at") if row.get("status") in _ENDED else None
                if is_for(path, trigger.path) and (ended is None or int(ended) - started > spec.sla_ms):
                    status, at = str(row.get("status", "")), started + spec.sla_ms
                    said = {"execution_id": number, "path": path, "at": at, "status": status}
                    await self._tell(trigger, spec, "sla", number, said)
            if len(page) < _PAGE:
                return
            asked = Selection(since=since, until=until, limit=_PAGE, before=str(page[-1]["execution_id"]))


def spec_of(trigger: StoredTrigger) -> NotificationSpec:
    """Return what a stored notification holds. Raises InvalidInput."""
    return read_spec(trigger.spec, NotificationSpec)


def message_of(key: str, trigger: StoredTrigger, spec: NotificationSpec, news: News, base: str) -> OutboxMessage:
    """Return the message of the outbox that tells news."""
    target = "http" if spec.url else _TARGETS[spec.channel]
    payload = payload_of(trigger.trigger_id, spec, news, base)
    return OutboxMessage(
        key, target=target, address=spec.url, payload=payload, auth=spec.credential, execution_id=news.execution_id
    )


def trial_message(trigger: StoredTrigger, base: str, now: int) -> OutboxMessage:
    """Return a message that tests a notification; each has a key of its own."""
    news = News("test", "", trigger.path, now)
    return message_of(f"{KIND}:test:{uuid4().hex}", trigger, spec_of(trigger), news, base)


def _wanted(triggers: list[StoredTrigger]) -> Collection[str]:
    return set(_types(triggers))


def _types(triggers: list[StoredTrigger]) -> Iterator[str]:
    yield _FINISHED
    for trigger in triggers:
        for name in spec_of(trigger).on:
            yield from _WANTED[name]


def _may_matter(event: Event) -> bool:
    """Return whether an event can be news, without reading more of its execution."""
    if event.event_type == _FINISHED:
        return event.status == "failed"
    if event.event_type in _LETTERS:
        return event.payload.get("letter") is not None
    return event.event_type == _PARKED or event.payload.get("signal") is not None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
