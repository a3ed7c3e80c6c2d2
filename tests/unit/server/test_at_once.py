"""A report or a start that would be a batch by itself is decided and committed before anything else happens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from noetl.engine.evolve import fold
from noetl.engine.state import checksum
from noetl.model.errors import StoreUnavailable
from noetl.model.messages import PatchCtx, Report, Start
from noetl.model.work import Lease
from noetl.ports import AuditEntry, Claim, Commit, Receipt
from noetl.server.control import LocalControl
from noetl.stores import database
from noetl.stores.database import connect
from noetl.stores.memory import MemoryStore
from noetl.stores.sqlite import SqliteStore
from tests.unit.server.system import HEAD, RealClock, begin, chain, done, ended, register, workers

pytestmark = pytest.mark.asyncio
PAIR = (
    HEAD
    + "workflow:\n- {step: a, tool: {kind: noop}, next: [b, c]}\n"
    + "".join(f"- {{step: {name}, tool: {{kind: noop}}}}\n" for name in "bc")
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the disk for a quick one, however busy this machine is."""
    monkeypatch.setattr(database, "_LONG_S", 1e9)


class Noting(SqliteStore):
    """Notes how each commit came, and may fail after the next that comes at once."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.ways: list[str] = []
        self.made: list[Commit] = []
        self.claims: list[Claim] = []
        self.trouble = ""

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        if commits:
            self.ways.append("batch")
            self.made += commits
        return await super().commit(commits, claims)

    def commit_at_once(self, make: Callable[[], tuple[Commit, Sequence[Claim]] | None]) -> Receipt | None:
        trouble, self.trouble = self.trouble, ""
        if trouble == "before":
            make()
            raise StoreUnavailable("the disk is away")
        receipt = super().commit_at_once(lambda: self._looked_at(make()))
        self.ways.append("at once" if receipt is not None else "not now")
        if trouble == "after":
            raise StoreUnavailable("the disk went away")
        return receipt

    def _looked_at(self, made: tuple[Commit, Sequence[Claim]] | None) -> tuple[Commit, Sequence[Claim]] | None:
        if made is not None:
            self.made.append(made[0])
            self.claims += made[1]
        return made


async def test_reports_in_a_row_are_committed_at_once_and_the_others_have_their_turn(tmp_path: Path) -> None:
    store, turns = Noting(tmp_path / "noetl.db"), 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with LocalControl(store, RealClock(), snapshot_every=1_000) as control:
        execution_id = await begin(control, await register(store, chain(40)))
        [lease] = await control.claim("w", [""], 1, 0)
        beside = asyncio.create_task(others())
        store.ways.clear()
        for number in range(1, 40):
            [lease] = await control.report(execution_id, done(lease), want=1)
            assert lease.work.step == f"s{number}"
        beside.cancel()
        assert store.ways.count("at once") >= 30
        assert turns >= 4
        live = checksum(await control.sequencer.state(execution_id))
    assert live == checksum(fold(execution_id, await store.read(execution_id)))
    await store.close()


async def test_with_other_work_out_a_report_waits_for_the_batch(tmp_path: Path) -> None:
    store = Noting(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, PAIR))
        [first] = await control.claim("w", [""], 1, 0)
        await control.report(execution_id, done(first))
        pair = await control.claim("w", [""], 2, 0)
        store.ways.clear()
        await asyncio.gather(*(control.report(execution_id, done(lease)) for lease in pair))
        assert store.ways == ["batch"]
    await store.close()


class Unsteady(MemoryStore):
    """Has to be waited for, and may fail before or after the next commit."""

    trouble = ""

    async def commit(self, commits: Sequence[Commit], claims: Sequence[Claim] = ()) -> Receipt:
        trouble, self.trouble = self.trouble, ""
        if trouble == "before":
            raise StoreUnavailable("the disk is away")
        await asyncio.sleep(0)
        receipt = await super().commit(commits, claims)
        if trouble == "after":
            raise StoreUnavailable("the disk went away")
        return receipt


async def soon(control: LocalControl, execution_id: str, report: Report) -> list[Lease] | None:
    """Report without waiting for a turn; None: it has to be submitted."""
    told: asyncio.Future[list[Lease] | None] = asyncio.get_running_loop().create_future()
    return await told if control.report_soon(execution_id, report, 1, told.set_result) else None


async def soon_after(control: LocalControl, execution_id: str, report: Report) -> list[Lease]:
    """Report as soon as nothing else is under way."""
    async with asyncio.timeout(15):
        while (leases := await soon(control, execution_id, report)) is None:
            await asyncio.sleep(0)
    return leases


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_reports_are_told_by_a_call_and_leave_the_same_as_any(tmp_path: Path, kind: str) -> None:
    store = Unsteady() if kind == "memory" else Noting(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock(), snapshot_every=1_000) as control:
        execution_id = await begin(control, await register(store, chain(12)))
        leases = await control.claim("w", [""], 1, 0)
        steps = []
        while leases:
            steps.append(leases[0].work.step)
            leases = await soon_after(control, execution_id, done(leases[0]))
        assert steps == [f"s{number}" for number in range(12)]
        live = checksum(await control.sequencer.state(execution_id))
        row = await store.execution(execution_id)
    assert row is not None
    assert row["status"] == "completed"
    assert live == checksum(fold(execution_id, await store.read(execution_id)))
    await store.close()


@pytest.mark.parametrize("trouble", ["before", "after"])
async def test_a_report_that_is_not_known_to_be_applied_is_sent_the_usual_way_and_applied_once(trouble: str) -> None:
    store = Unsteady()
    async with LocalControl(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, chain(4)))
        [lease] = await control.claim("w", [""], 1, 0)
        [lease] = await soon_after(control, execution_id, done(lease))
        store.trouble = trouble
        while store.trouble:
            assert await soon(control, execution_id, done(lease)) is None
        status, leases = await control.reported(execution_id, done(lease), 1)
        assert status == ("duplicate" if trouble == "after" else "applied")
        control.sequencer.handed.give_back(leases)
        async with workers(control, 1):
            row = await ended(control, store, execution_id)
    assert row["status"] == "completed"
    ids = [event.event_id for event in await store.read(execution_id)]
    assert len(ids) == len(set(ids))


async def test_one_that_waits_is_served_with_a_report_that_wants_nothing() -> None:
    store = Unsteady()
    async with LocalControl(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, chain(2)))
        [lease] = await control.claim("w", [""], 1, 0)
        waiting = asyncio.create_task(control.claim("other", [""], 1, 10))
        told: asyncio.Future[list[Lease] | None] = asyncio.get_running_loop().create_future()
        while not control.report_soon(execution_id, done(lease), 0, told.set_result):
            await asyncio.sleep(0)
        assert await told == []
        assert [found.work.step for found in await waiting] == ["s1"]


async def test_while_another_process_writes_nothing_is_decided_at_once(tmp_path: Path) -> None:
    store, other = Noting(tmp_path / "noetl.db"), connect(str(tmp_path / "noetl.db"))
    async with LocalControl(store, RealClock(), look_s=60) as control:
        execution_id = await begin(control, await register(store, chain(3)))
        [lease] = await control.claim("w", [""], 1, 0)
        before = await control.sequencer.state(execution_id)
        other.execute("BEGIN IMMEDIATE")
        store.ways.clear()
        reporting = asyncio.create_task(control.report(execution_id, done(lease), want=1))
        while not store.ways:
            await asyncio.sleep(0)
        other.execute("COMMIT")
        [lease] = await reporting
        assert store.ways == ["not now", "batch"]
        assert await control.sequencer.state(execution_id) is before
    other.close()
    await store.close()


@pytest.mark.parametrize("trouble", ["before", "after"])
async def test_what_goes_wrong_goes_the_usual_way_and_is_applied_once(tmp_path: Path, trouble: str) -> None:
    store = Noting(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock()) as control:  # no lease runs out here: what nobody was told of goes back
        execution_id = await begin(control, await register(store, chain(4)))
        [lease] = await control.claim("w", [""], 1, 0)
        store.trouble = trouble
        control.sequencer.handed.give_back(await control.report(execution_id, done(lease), want=1))
        async with workers(control, 1):
            row = await ended(control, store, execution_id)
    assert (row["status"], set(map(str, row["steps"].values()))) == (
        "completed",
        {"{'done': 1, 'failed': 0, 'skipped': 0}"},
    )
    ids = [event.event_id for event in await store.read(execution_id)]
    assert len(ids) == len(set(ids))
    await store.close()


async def test_a_report_that_another_server_outran_leaves_no_lease_that_nobody_has(tmp_path: Path) -> None:
    store, other = Noting(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock(), look_s=60) as control, LocalControl(other, RealClock()) as second:
        book = await register(store, chain(2))
        first = await begin(control, book)
        [lease] = await control.claim("w", [""], 1, 0)
        later = await begin(control, book)  # its work waits, so whoever asks is served
        await second.submit(first, PatchCtx("patch", {"x": 1}))
        store.ways.clear()
        taken = await control.report(first, done(lease), want=1)
        assert store.ways == ["at once", "batch"]  # the one was stale
        async with asyncio.timeout(15):  # a lease that nobody has would run out after thirty seconds
            while len(taken) < 2:
                taken += await control.claim("w", [""], 1, 1)
        assert {one.work.work_id for one in taken} == {f"{first}:s1#1", f"{later}:s0#1"}
    await store.close()
    await other.close()


async def asking(control: LocalControl, worker: str = "other") -> asyncio.Task[list[Lease]]:
    """Have a worker ask for work, which nobody has looked for yet."""
    found = asyncio.create_task(control.claim(worker, [""], 1, 30))
    await asyncio.sleep(0)
    return found


async def idle(control: LocalControl, book: str) -> None:
    """Wait until a worker waits and there is nothing else to do; the playbook is known then."""
    await control.plan(book)
    while not (control.sequencer._inbox.waiting and control.sequencer.would_be_alone()):
        await asyncio.sleep(0)


def plainly(commit: Commit) -> str:
    """Give all of a commit, without its id and its times."""
    return re.sub(r"\b1\d{12}\b", "T", repr(commit).replace(commit.execution_id, "X"))


async def test_a_start_is_committed_at_once_where_a_worker_waits_and_changes_the_same_as_in_a_batch(
    tmp_path: Path,
) -> None:
    store = Noting(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock(), look_s=60) as control:
        book = await register(store, chain(2))

        async def start(execution_id: str) -> Mapping[str, Any]:
            act = AuditEntry(1_700_000_000_000, "ada", "execution.start", execution_id)
            return await control.submit(execution_id, Start("m", "tests/flow", book, {"n": 1}), act)

        rows = [await start("100")]
        waiting = await asking(control)
        [lease] = await waiting  # the work of the first
        control.sequencer.handed.out.clear()
        waiting = await asking(control)
        await idle(control, book)
        rows.append(await start("200"))
        assert store.ways == ["batch", "at once"]
        assert [found.work.execution_id for found in await waiting] == ["200"]
        assert plainly(store.made[0]) == plainly(store.made[1])
        assert rows[0]["last_seq"] == rows[1]["last_seq"] == len(await store.read("200"))
        assert rows[0]["status"] == rows[1]["status"] == "running"
        control.sequencer.handed.give_back([lease])
        async with workers(control, 1):
            assert (await ended(control, store, "100"))["status"] == "completed"
    await store.close()


async def test_of_starts_that_come_together_one_is_alone_and_the_others_share_a_batch(tmp_path: Path) -> None:
    store = Noting(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock(), look_s=60) as control:
        book = await register(store, chain(1))
        waiting = await asking(control)
        await idle(control, book)
        await asyncio.gather(*(begin(control, book) for _ in range(10)))
        assert store.ways == ["at once", "batch"]
        assert len(await waiting) == 1
    await store.close()


@pytest.mark.parametrize("trouble", ["", "before", "after"])
async def test_who_asks_in_the_same_moment_is_served_with_a_report(tmp_path: Path, trouble: str) -> None:
    store = Noting(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock(), look_s=60) as control:
        execution_id = await begin(control, await register(store, chain(2)))
        [lease] = await control.claim("w", [""], 1, 0)
        waiting = await asking(control)
        store.ways.clear()
        store.trouble = trouble
        assert await control.report(execution_id, done(lease)) == []
        async with asyncio.timeout(20):
            [lease] = await waiting
        assert (lease.work.step, lease.worker) == ("s1", "other")
        assert trouble or store.ways == ["at once"]
    await store.close()


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_reports_that_share_a_batch_are_told_by_a_call(tmp_path: Path, kind: str) -> None:
    store = Unsteady() if kind == "memory" else Noting(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, PAIR))
        [first] = await control.claim("w", [""], 1, 0)
        await control.report(execution_id, done(first))
        pair = await control.claim("w", [""], 2, 0)
        told = await asyncio.gather(*(soon(control, execution_id, done(lease)) for lease in pair))
        assert told == [[], []]
        assert control.sequencer.unanswered == 0
        again = await asyncio.gather(*(soon(control, execution_id, done(lease)) for lease in pair))
        assert again == [None, None]  # to be sent the usual way, which tells what they are
        assert [await control.reported(execution_id, done(lease)) for lease in pair] == [("duplicate", [])] * 2
        row = await store.execution(execution_id)
        assert row is not None
        assert row["status"] == "completed"
        assert control.sequencer.unanswered == 0
    await store.close()


async def test_reports_that_wait_when_the_control_plane_stops_are_to_be_sent_again() -> None:
    store, told = Unsteady(), list[list[Lease] | None]()
    async with LocalControl(store, RealClock()) as control:
        execution_id = await begin(control, await register(store, PAIR))
        [first] = await control.claim("w", [""], 1, 0)
        await control.report(execution_id, done(first))
        for lease in await control.claim("w", [""], 2, 0):
            assert control.report_soon(execution_id, done(lease), 1, told.append)
        assert control.sequencer.unanswered == 2
    assert told == [None, None]
    assert not control.report_soon(execution_id, done(first), 1, told.append)


@pytest.mark.parametrize("trouble", ["before", "after"])
async def test_a_start_that_goes_wrong_goes_the_usual_way_and_is_applied_once(tmp_path: Path, trouble: str) -> None:
    store = Noting(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock(), look_s=60) as control:
        book = await register(store, chain(2))
        async with workers(control, 1):
            await idle(control, book)
            store.trouble = trouble
            execution_id = await begin(control, book)
            assert (store.trouble, store.ways[-1]) == ("", "batch")
            row = await ended(control, store, execution_id)
    assert row["status"] == "completed"
    ids = [event.event_id for event in await store.read(execution_id)]
    assert len(ids) == len(set(ids))
    await store.close()


async def test_work_that_is_known_not_to_be_there_is_not_asked_for_until_another_process_brings_some(
    tmp_path: Path,
) -> None:
    store, other = Noting(tmp_path / "noetl.db"), SqliteStore(tmp_path / "noetl.db")
    async with LocalControl(store, RealClock(), look_s=0.01) as control, LocalControl(other, RealClock()) as second:
        book = await register(store, chain(1))
        waiting = asyncio.create_task(control.claim("w", [""], 5, 30))
        await idle(control, book)
        execution_id = await begin(control, book)
        [lease] = await waiting
        control.sequencer._inbox.dry.update({(("",), ()): 2**62})  # however slow this machine is
        waiting = await asking(control, "w")
        assert [ask.worker for ask in control.sequencer._inbox.waiting] == ["w"]
        await idle(control, book)
        asked = len(store.claims)
        assert await control.report(execution_id, done(lease), want=1) == []
        assert (store.ways[-1], store.claims[asked:]) == ("at once", [])
        await begin(second, book)
        async with asyncio.timeout(20):
            assert len(await waiting) == 1
    await store.close()
    await other.close()
