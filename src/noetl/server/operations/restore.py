"""Hold what was in flight in a restored store until a person has looked at it.

A backup is older than the last effects: work that it has queued or leased, timers, messages to other systems and schedules
may have had theirs already, and executions that ended may have started others. Tested in tests/acceptance/admin/test_restore.py.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple
from uuid import uuid4

from noetl.model.messages import Pause
from noetl.ports import CivilClock, DerivedTables, EventLog
from noetl.ports.outbox import Outbox
from noetl.ports.schedules import Schedules
from noetl.ports.triggers import Triggers
from noetl.server.control_plane import LocalControlPlane
from noetl.server.operations.schedules import pause_all
from noetl.server.operations.triggers import pause_subscriptions, skip_ends

_REASON: Final = "the store was restored from a backup, so what was in flight may have had its effects already"
_LAST: Final = 2**62
_PAGE: Final = 500
_IDLE_S: Final = 0.01


class Held(NamedTuple):
    """What waits for a review: executions by id, and how many messages and triggers."""

    executions: list[str]
    messages: int
    schedules: int
    subscriptions: int


async def hold_for_review(
    control: LocalControlPlane,
    store: EventLog,
    derived: DerivedTables,
    outbox: Outbox,
    schedules: Schedules,
    triggers: Triggers,
    clock: CivilClock,
) -> Held:
    """Hold executions with work or timers, pending messages and triggers that start.

    The control plane must not run: it would fire timers. Messages between executions are delivered, as children that
    they start are held too. Ends of executions that no trigger has read yet start nothing.
    """
    sequencer = control.sequencer
    running = asyncio.create_task(sequencer.run())
    held: list[str] = []
    try:
        await derived.skip_epochs()
        await asyncio.sleep(0)
        while True:
            await sequencer.gather()
            while not sequencer.is_idle:
                await clock.sleep(_IDLE_S)
            found = await _in_flight(control, derived)
            for execution_id in found:
                await sequencer.submit(execution_id, Pause(uuid4().hex, review=_REASON))
            held += found
            if not found:
                await skip_ends(triggers, store)
                messages, now = await _hold_messages(outbox), clock.civil()
                paused = (await pause_all(schedules, now), await pause_subscriptions(triggers, now))
                return Held(held, messages, *paused)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _in_flight(control: LocalControlPlane, derived: DerivedTables) -> list[str]:
    """Return the executions with work or timers that are not held."""
    found, after = [], 0
    while page := await derived.open(after, _LAST, _PAGE):
        after = page[-1].number
        for one in page:
            rows = await derived.rows(one.execution_id)
            if (rows.work or rows.timers) and (await control.sequencer.state(one.execution_id)).review is None:
                found.append(one.execution_id)
    return found


async def _hold_messages(outbox: Outbox) -> int:
    """Make pending messages dead, for `noetl outbox retry`; return how many."""
    count = 0
    while messages := await outbox.claim(_LAST, _LAST, _PAGE):
        for message in messages:
            await outbox.failed(message.number, message.attempts, _REASON, None)
        count += len(messages)
    return count
