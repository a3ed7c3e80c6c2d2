"""Doorbell over PostgreSQL: wakes other processes, also after a reconnect."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from noetl.doorbells.pg_notify import PgNotify
from noetl.model.ids import snowflake
from noetl.model.messages import Signal, Start
from noetl.settings import Settings
from noetl.stores.postgres.database import connect
from noetl.wiring.embedded import embedded
from tests.databases import fresh_database
from tests.unit.server.system import HEAD, RealClock, register

pytestmark = pytest.mark.asyncio
LONG_S = 30.0


async def listening(bell: PgNotify) -> None:
    """Wait until a doorbell listens; it says so by one ring of its own."""
    assert await bell.heard(LONG_S)


async def test_a_ring_is_heard_by_the_others_only() -> None:
    address = fresh_database()
    one, two = PgNotify(address), PgNotify(address)
    try:
        await asyncio.gather(listening(one), listening(two))
        one.ring()
        assert await two.heard(LONG_S)
        assert not await one.heard(0.05)
        assert not await two.heard(0.05)
    finally:
        await one.close()
        await two.close()


async def test_a_lost_connection_is_made_again() -> None:
    address = fresh_database()
    one, two = PgNotify(address), PgNotify(address)
    try:
        await asyncio.gather(listening(one), listening(two))
        admin = await connect(address)
        await admin.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE 'LISTEN%'"
        )
        await admin.close()
        await asyncio.gather(listening(one), listening(two))
        two.ring()
        assert await one.heard(LONG_S)
    finally:
        await one.close()
        await two.close()


async def test_two_servers_share_executions_and_fire_each_timer_once(tmp_path: Path) -> None:
    """A signal at one server moves work of the other; shared timers fire once."""
    settings = Settings(tmp_path / "noetl.db", database=fresh_database())
    text = HEAD + "workflow:\n  - step: nap\n    tool: {kind: sleep, seconds: 0.3}\n    next: ask\n"
    text += (
        "  - step: ask\n    tool: {kind: wait, signal: go}\n    next: last\n  - step: last\n    tool: {kind: noop}\n"
    )
    async with embedded(settings) as one, embedded(settings) as two:
        playbook = await register(one.store, text)
        ids = [snowflake(RealClock().now(), 1, number) for number in range(10)]
        async with two.run_worker("p"):
            for place, execution_id in enumerate(ids):
                start = Start(f"start-{execution_id}", "tests/test", playbook, pool="p")
                await (one, two)[place % 2].control.submit(execution_id, start)
            for place, execution_id in enumerate(ids):
                signal = Signal(f"go-{execution_id}", "go")
                await (two, one)[place % 2].control.submit(execution_id, signal)
            for execution_id in ids:
                async with asyncio.timeout(LONG_S):
                    events = [event async for event in one.control.follow(execution_id)]
                types = [event.event_type for event in events]
                assert types.count("timer.fired") == types.count("signal.received") == 1
                assert types.count("step.done") == 3
                assert [event.seq for event in events] == list(range(1, len(events) + 1))
