"""Every store's maintenance: derived rows are read, deleted and inserted again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from noetl.model.messages import Signal
from noetl.ports import DerivedRows, DerivedTables
from noetl.server.background.rebuild import Rebuild
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.control_plane import LocalControlPlane
from tests.conformance.commits import snapshot_of
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import HEAD, RealClock, begin, done, ended, register, report_on, workers

pytestmark = pytest.mark.asyncio
PLAYBOOK = (
    HEAD
    + """
executor: {spec: {timeout_s: 3600}}
workflow:
  - {step: one, tool: {kind: noop}, next: [two, three]}
  - {step: two, tool: {kind: noop}, next: four}
  - {step: three, tool: {kind: noop}, next: four}
  - {step: four, tool: {kind: noop}}
"""
)


async def halfway(store: Store, execution_id: str = "500") -> None:
    """Run an execution until two pieces of work are there, one of them leased."""
    async with LocalControlPlane(store, RealClock(), snapshot_every=1) as control:
        await begin(control, await register(store, PLAYBOOK), execution_id)
        [lease] = await control.claim("w", ("",), 1, 0)
        await report_on(control, execution_id, done(lease), want=1)


def rebuilding(store: Store, derived: DerivedTables) -> Rebuild:
    return Rebuild(store, derived, PlanCache(store))


async def test_executions_with_a_log_are_given_page_by_page(store: Store, derived: DerivedTables) -> None:
    for name in ("500", "501", "502"):
        await halfway(store, name)
    first = await derived.logged(0, 2)
    assert [name for _, name in first] == ["500", "501"]
    assert [name for _, name in await derived.logged(first[-1][0], 2)] == ["502"]
    assert await derived.logged((await derived.logged(0, 9))[-1][0], 2) == []


async def test_what_is_taken_out_and_put_in_is_the_same(store: Store, derived: DerivedTables) -> None:
    await halfway(store)
    before = await derived.rows("500")
    assert (len(before.work), len(before.timers), before.projection["status"]) == (2, 1, "running")
    sent = replace(before, inbox=(("500", Signal("m1", "go")),))
    await derived.empty(1_000)
    assert await derived.rows("500") == DerivedRows("500", 0)
    assert await snapshot_of(store, "500", 1) is None
    await derived.put_rows([sent])
    assert await derived.rows("500") == sent
    assert await store.inbox(9) == [("500", Signal("m1", "go"))]


async def test_leases_begin_anew_above_every_recorded_epoch(store: Store, derived: DerivedTables) -> None:
    await halfway(store)
    row = await derived.rows("500")
    for epoch in (1_000, 5):  # never down again
        await derived.empty(epoch)
        await derived.put_rows([row])
        leases = await store.claim("w", [""], 9, 10**13, 10**13 + 1)
        assert [lease.attempt for lease in leases] == [1, 1]
        assert min(lease.epoch for lease in leases) > 1_000


DAMAGE: dict[str, tuple[Callable[[DerivedRows], DerivedRows], str]] = {
    "work": (lambda row: replace(row, work=()), "work: missing"),
    "changed work": (
        lambda row: replace(row, work=tuple((at, replace(item, priority=7)) for at, item in row.work)),
        "differs from what was scheduled",
    ),
    "timers": (lambda row: replace(row, timers=()), "timers: missing"),
    "other timers": (lambda row: replace(row, timers=(*row.timers, ("other", 1))), "unexpected [('other', 1)]"),
    "row": (lambda row: replace(row, last_seq=row.last_seq - 1), "the row ends at event"),
    "status": (
        lambda row: replace(row, projection={**row.projection, "status": "failed"}),
        "differs from the log",
    ),
}


@pytest.mark.parametrize("what", DAMAGE)
async def test_damage_is_told_and_repaired_and_it_goes_on_to_its_end(place: Place, what: str) -> None:
    if place.kind in ("memory", "sqlite") and what == "row":
        pytest.skip("here the number of events is that of the log itself")
    damage, text = DAMAGE[what]
    store = place.open()
    derived = place.derived(store)
    await halfway(store)
    rebuild = rebuilding(store, derived)
    assert await rebuild.check() == []
    row = await derived.rows("500")
    await derived.empty(0)
    await derived.put_rows([damage(row)])
    found = await rebuild.check()
    assert any(text in line for line in found), found
    assert await rebuild.rebuild() == 1
    assert await rebuild.check() == []
    again = place.open()
    async with LocalControlPlane(again, RealClock()) as control, workers(control):
        assert (await ended(control, again, "500"))["status"] == "completed"
