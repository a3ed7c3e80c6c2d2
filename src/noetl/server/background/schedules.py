"""Fire schedules: record the firings that are due, and start their executions.

Two steps, and a crash between them loses and doubles nothing. The first moves a schedule on and records its firings, with the
ids of their executions, in one transaction that only one server can win. The second decides each recorded firing: it starts
that execution, or records why it starts none. A start that is repeated finds its own execution. One server at a time does
this, so that others do not try the same in vain; nothing depends on it. Tested in tests/conformance/test_scheduler.py.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any, Final, Protocol

from msgspec.structs import replace

from noetl.model.errors import Conflict, InvalidInput, LimitReached, NoetlError, StoreUnavailable, log_level
from noetl.model.messages import AnyMessage, Cancel, Start
from noetl.observe.engine_counts import EngineCounts
from noetl.ports import Audit, AuditEntry, Catalog, CivilClock, EventLog
from noetl.ports.schedules import Firing, Schedule, Schedules
from noetl.schedules.due import MOST_STARTS, Missed, due, start_at
from noetl.schedules.times import times_of, zone_of
from noetl.server.cache.ids import is_started_by, new_execution

_log = logging.getLogger(__name__)
_DUTY: Final = "schedules"
_DUTY_MS: Final = 10_000
_PAGE: Final = 1_000
_MOST_WAITING: Final = 100  # queued firings of one schedule
_FORGET_EVERY_S: Final = 3_600.0
KEPT_MS: Final = 90 * 86_400_000  # how long decided firings are kept
Submit = Callable[[str, AnyMessage, Audit], Awaitable[Mapping[str, Any]]]


class Duties(Protocol):
    """Duties that one of several servers has."""

    async def on_duty(self, name: str, holder: str, now: int, until: int) -> bool: ...


class Store(EventLog, Catalog, Protocol):
    """A log and a catalog."""


class Scheduler:
    """Look for due firings every second."""

    def __init__(
        self,
        schedules: Schedules,
        store: Store,
        duties: Duties,
        submit: Submit,
        clock: CivilClock,
        *,
        holder: str,
        every_s: float = 1.0,
        counts: EngineCounts | None = None,
    ) -> None:
        self._counts = counts or EngineCounts()
        self._schedules = schedules
        self._store = store
        self._duties = duties
        self._submit = submit
        self._clock = clock
        self._holder = holder
        self._every_s = every_s

    async def run(self) -> None:
        """Fire until cancelled."""
        rest = 0.0
        while True:
            try:
                await self.look()
                rest -= self._every_s
                if rest <= 0:
                    rest = _FORGET_EVERY_S
                    await self._schedules.forget(self._clock.civil() - KEPT_MS)
            except NoetlError as error:
                _log.log(log_level(error), "Schedules fire later: %s", error)
            except Exception as error:  # noqa: BLE001 - it must not end silently
                _log.exception("Firing schedules failed; it is tried again", exc_info=error)
            await self._clock.sleep(self._every_s)

    async def look(self) -> None:
        """Record the firings that are due now, and decide all recorded ones."""
        await self._schedules.settle()
        now, steady = self._clock.civil(), self._clock.now()
        found = await self._schedules.due(now, _PAGE)
        if not found and not await self._schedules.undecided(("", 0), 1):
            return
        if not await self._duties.on_duty(_DUTY, self._holder, steady, steady + _DUTY_MS):
            return
        for schedule in found:
            await self.record(schedule, now)
        await self.decide()

    async def record(self, schedule: Schedule, now: int) -> bool:
        """Record the due firings of a schedule; False if another server did."""
        if schedule.next_at is None:
            return False
        try:
            times = times_of(schedule.spec)
        except InvalidInput as error:  # the time zone is gone, or another version of NoETL wrote it
            why = f"The schedule was paused, because its times cannot be computed: {error}"
            firing = Firing(schedule.schedule_id, schedule.next_at, "refused", "", "refused", why, decided_at=now)
            return await self._schedules.save(replace(schedule, paused=True, changed_at=now), [firing])
        room = MOST_STARTS if not schedule.spec.at_once else await self._room(schedule)
        if room <= 0:
            return False
        found = due(schedule.spec, times, schedule.schedule_id, schedule.next_at, now, room)
        late = None if found.missed is None else missed_firing(schedule, found.missed, "late", now)
        firings = [Firing(schedule.schedule_id, at, "due", str(new_execution(now))) for at in found.starts]
        following = found.next_at
        start = None if following is None else start_at(schedule.spec, schedule.schedule_id, following)
        moved = replace(schedule, next_at=following, start_at=start)
        return await self._schedules.save(moved, [late, *firings] if late else firings)

    async def _room(self, schedule: Schedule) -> int:
        """Return how many more executions of a backfill may run."""
        tally = await self._schedules.tally(schedule.schedule_id)
        return schedule.spec.at_once - sum(tally.get(state, 0) for state in ("due", "queued", "started"))

    async def decide(self) -> None:
        """Decide every recorded firing, in order."""
        after = ("", 0)
        while page := await self._schedules.undecided(after, _PAGE):
            for schedule_id, firings in groupby(page, key=lambda firing: firing.schedule_id):
                schedule = await self._schedules.schedule(schedule_id)
                try:
                    if schedule is not None:
                        await self._decide_all(schedule, list(firings))
                except Conflict as error:
                    _log.log(log_level(error), "Schedule %s fires later: %s", schedule_id, error)
            after = (page[-1].schedule_id, page[-1].at)

    async def _decide_all(self, schedule: Schedule, firings: list[Firing]) -> None:
        running = await self._schedules.running(schedule.schedule_id)
        waiting = 0
        if await self._is_started(schedule, firings[0]):  # by a server that could not record it any more
            await self._note_start(firings[0])
            running.append(firings.pop(0))
        for firing in firings:
            blocked = running if schedule.spec.overlap != "allow" else []
            if schedule.paused:
                await self._skip(firing, "paused", "The schedule was paused before the execution started.")
            elif not blocked:
                if await self._start(schedule, firing):
                    running.append(firing)
            elif schedule.spec.overlap == "skip":
                name = blocked[-1].execution_id
                await self._skip(firing, "overlap", f"Execution {name} of this schedule was running.")
            elif schedule.spec.overlap == "queue":
                waiting += 1
                await self._queue(firing, waiting)
            elif firing is not firings[-1]:
                await self._skip(firing, "replaced", "A later firing of this schedule came before it started.")
            else:
                await self._cancel(schedule, firing, blocked)

    async def _queue(self, firing: Firing, waiting: int) -> None:
        if waiting > _MOST_WAITING:
            await self._skip(firing, "overlap", f"{_MOST_WAITING} firings of this schedule were waiting.")
        elif firing.state != "queued":
            await self._schedules.decide(replace(firing, state="queued"))

    async def _cancel(self, schedule: Schedule, firing: Firing, running: Iterable[Firing]) -> None:
        """Cancel what runs; the firing starts when it has ended."""
        for other in running:
            name = f"{_key(schedule, firing)}:cancel:{other.execution_id}"
            message = Cancel(name, f"firing of schedule {schedule.schedule_id}", by=f"schedule:{schedule.schedule_id}")
            try:
                await self._submit(other.execution_id, message, None)
            except StoreUnavailable:
                raise
            except NoetlError as error:  # it has ended, or another server changes it: the next look tries again
                _log.log(log_level(error), "Execution %s cannot be cancelled now: %s", other.execution_id, error)
        if firing.state != "queued":
            await self._schedules.decide(replace(firing, state="queued"))

    async def _start(self, schedule: Schedule, firing: Firing) -> bool:
        """Start the execution of a firing, or record why not. Raises Conflict: later."""
        try:
            if not await self._is_started(schedule, firing):
                await self._submit_start(schedule, firing)
        except LimitReached as error:
            await self._skip(firing, "limit", str(error))
            return False
        except InvalidInput as error:
            await self._refuse(schedule, firing, str(error))
            return False
        await self._note_start(firing)
        if not schedule.spec.at_once:  # a backfill is late on purpose
            self._counts.fired("schedule", (self._clock.civil() - firing.at) / 1000)
        return True

    async def _note_start(self, firing: Firing) -> None:
        await self._schedules.decide(replace(firing, state="started", decided_at=self._clock.civil()))

    async def _is_started(self, schedule: Schedule, firing: Firing) -> bool:
        first = await self._store.read(firing.execution_id, 0, 1)
        if not first:
            return False
        if is_started_by(first[0], _key(schedule, firing)):
            return True
        other = replace(firing, execution_id=str(new_execution(self._clock.now())))
        await self._schedules.decide(other)
        raise Conflict(f"the id {firing.execution_id} belongs to another execution")

    async def _submit_start(self, schedule: Schedule, firing: Firing) -> None:
        playbook = await self._store.content_hash(schedule.path, schedule.version)
        if playbook is None:
            which = f"version {schedule.version} of " if schedule.version else ""
            raise InvalidInput(f"The catalog has no {which}`{schedule.path}`. Register it, or delete the schedule.")
        by, now = f"schedule:{schedule.schedule_id}", self._clock.now()
        message = Start(_key(schedule, firing), schedule.path, playbook, payload_of(schedule, firing.at), tags=(by,))
        detail = {"path": schedule.path, "playbook": playbook, "at": firing.at}
        act = AuditEntry(now, by, "execution.start", firing.execution_id, detail)
        await self._submit(firing.execution_id, message, act)

    async def _refuse(self, schedule: Schedule, firing: Firing, why: str) -> None:
        _log.warning("Schedule %s started nothing: %s", schedule.schedule_id, why)
        state = replace(firing, state="refused", reason="refused", detail=why[:2_000], decided_at=self._clock.civil())
        await self._schedules.decide(state)

    async def _skip(self, firing: Firing, reason: str, why: str) -> None:
        state = replace(firing, state="skipped", reason=reason, detail=why, decided_at=self._clock.civil())
        await self._schedules.decide(state)


def missed_firing(schedule: Schedule, missed: Missed, reason: str, now: int) -> Firing:
    """Return the record of missed firings, which says why they start nothing."""
    texts = {
        "late": f"No server fired in time, and `catch_up` is `{schedule.spec.catch_up}`.",
        "paused": "The schedule was paused.",
        "changed": "The schedule was changed before the execution started.",
    }
    return Firing(
        schedule.schedule_id, missed.first, "skipped", "", reason, texts[reason],
        missed.last, missed.count, missed.is_more, now,
    )  # fmt: skip


def payload_of(schedule: Schedule, at: int) -> Mapping[str, Any]:
    """Return the payload of an execution, with the time of its firing if it is named."""
    payload = dict(schedule.spec.payload)
    if schedule.spec.time_as:
        payload[schedule.spec.time_as] = local_time(schedule, at)
    return payload


def local_time(schedule: Schedule, at: int) -> str:
    """Return a time as text, in the time zone of the schedule."""
    return datetime.fromtimestamp(at / 1000, zone_of(schedule.spec.timezone)).isoformat()


def _key(schedule: Schedule, firing: Firing) -> str:
    """Return the id of the message that starts a firing; the same at every try."""
    return f"schedule:{schedule.schedule_id}:{firing.at}"
