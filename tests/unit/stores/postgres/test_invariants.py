"""Invariants: each finds its violation, and nothing in a consistent store."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from noetl.stores.common.queries import invariants
from noetl.stores.postgres.admin import PostgresAdmin
from noetl.stores.postgres.database import connect
from noetl.stores.postgres.rows import events_text
from noetl.stores.postgres.store import PostgresStore
from tests.conformance.commits import commit
from tests.databases import fresh_database

ENDED, OPEN = "71", "72"
STATS = {"stats": {"total": 2}, "odd": "\0"}
QUEUE = "INSERT INTO queue (node_id, action, context, status, execution_id) VALUES ('w', 's', '{}', "
# event type, or a statement → how many events become so, and what is found then
WRONG = {
    f"UPDATE execution SET last_seq = 3 WHERE execution_id = {ENDED}": (0, "its row ends at 3, its log at 2"),
    "playbook.finished": (2, "it ended 2 times"),
    "step.done": (2, "s#1 ended 2 times"),
    "step.failed": (1, "s#1 ended and was never scheduled"),
    "step.scheduled": (1, "s#1 was scheduled and never ended"),
    "loop.iteration.failed": (2, "item 4 of s#1 ended 2 times"),
    "loop.done": (1, "s#1 is done with 0 of 2 items"),
    "timer.fired": (1, "timer t fired too often"),
    "child.finished": (2, "child.finished t is there 2 times"),
    f"INSERT INTO timer VALUES ({ENDED}, 't', 1)": (0, "the timer t is left"),
    f"{QUEUE} 'queued', {ENDED})": (0, "the work w is left"),
    f"{QUEUE} 'leased', {OPEN})": (0, "the lease of w has no holder or no end"),
    f"DELETE FROM timer WHERE execution_id = {OPEN}": (0, "it is running, and nothing will move it"),
}


@pytest.mark.asyncio
@pytest.mark.parametrize("what", WRONG)
async def test_what_cannot_be_is_found(what: str) -> None:
    address = fresh_database()
    store, admin = PostgresStore(address), await connect(address)
    ended, running = {"status": "completed", "ended_at": 9}, {"status": "running"}
    await store.commit(
        [commit(ENDED, count=2, projection=ended), commit(OPEN, timers=(("wakes", 1),), projection=running)]
    )
    assert await PostgresAdmin(address).violations() == []
    events, found = WRONG[what]
    if events:
        wrong = {"event_type": what, "step_run_id": "s#1", "entity_id": "t", "iteration": 4, "payload": STATS}
        log = await store.read(ENDED)
        text = events_text([replace(event, **wrong) for event in log[:events]] + log[events:])
        await admin.execute("UPDATE log SET events = $1 WHERE execution_id = $2", text, int(ENDED))
    else:
        await admin.execute(what)
    await admin.close()
    await store.close()
    violations = await PostgresAdmin(address).violations()
    assert any(found in line for line in violations), violations


def test_every_invariant_is_tried() -> None:
    assert len(WRONG) == len(invariants("postgres")) + 1  # one of them looks at two tables
