"""Garbage collection of results: idempotent, and readable results stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetl.blobs import stored
from noetl.blobs.files import FileBlobs
from noetl.blobs.memory import MemoryBlobs
from noetl.engine.queries.result_gc import Terms
from noetl.model.errors import BadReference, StoreUnavailable
from noetl.model.events import Event
from noetl.ports import Commit
from noetl.server.background.result_gc import ResultGC
from noetl.server.control_plane import Store

pytestmark = pytest.mark.asyncio
DAY = 86_400_000
NOW = 100 * DAY
TERMS = Terms(30 * DAY, DAY)


class Clock:
    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> int:
        return self.at

    async def sleep(self, seconds: float) -> None:
        self.at += round(seconds * 1000)


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


def ref(execution_id: str, name: str = "t") -> str:
    return f"noetl://execution/{execution_id}/step/a/task/{name}/run/1/attempt/1"


async def execution(
    store: Store, execution_id: str, *, ended_at: int | None = None, named: tuple[str, ...] = (), **came_from: Any
) -> None:
    """Write an execution down whose log names some results."""
    events = [("playbook.execution.requested", came_from), *(("result.stored", {"ref": name}) for name in named)]
    made = tuple(
        Event(f"{execution_id}-{seq}", execution_id, seq, kind, 1, "server", "playbook", "x", payload=payload)
        for seq, (kind, payload) in enumerate(events, 1)
    )
    row = {"status": "running" if ended_at is None else "completed", "path": "p", "started_at": 1, "ended_at": ended_at}
    receipt = await store.commit([Commit(execution_id, 0, made, projection=row)])
    assert receipt.commits[0].status == "applied"


async def put(blobs: MemoryBlobs | FileBlobs, address: str, scope: str = "execution", **more: Any) -> None:
    terms = {**stored.terms(scope, None, 1), **more}
    await stored.put(blobs, address, b'{"n":1}', "db", stored.JSON, "none", terms)


def collector(store: Store, blobs: Any, clock: Clock | None = None, every_s: float = 0) -> ResultGC:
    return ResultGC(store, blobs, clock or Clock(), TERMS, every_s)


async def gone(store: Store, blobs: Any) -> dict[str, str]:
    """Collect, and once more: the second time finds nothing."""
    told = {one.ref: one.cause for one in await collector(store, blobs).collect(dry_run=True)}
    assert {one.ref: one.cause for one in await collector(store, blobs).collect()} == told
    assert await collector(store, blobs).collect() == []
    return told


async def test_scopes_end_with_the_execution_and_after_it(store: Store, blobs: MemoryBlobs) -> None:
    scopes = ("step", "execution", "workflow", "permanent")
    for execution_id, ended_at in (("1", NOW - 31 * DAY), ("2", NOW - 2 * DAY), ("3", None)):
        names = tuple(ref(execution_id, scope) for scope in scopes)
        await execution(store, execution_id, ended_at=ended_at, named=names)
        for name, scope in zip(names, scopes, strict=True):
            await put(blobs, name, scope)
    assert await gone(store, blobs) == {
        ref("1", "step"): "scope",
        ref("1", "execution"): "retention",
        ref("1", "workflow"): "retention",
        ref("2", "step"): "scope",
    }
    assert await stored.value(blobs, ref("1", "permanent")) == {"n": 1}
    assert await stored.value(blobs, ref("3", "step")) == {"n": 1}


async def test_whoever_reads_what_was_removed_is_told_when_and_why(store: Store, blobs: MemoryBlobs) -> None:
    await execution(store, "1", ended_at=NOW - 2 * DAY, named=(ref("1"),))
    await put(blobs, ref("1"), "step")
    meta = await blobs.about(ref("1"))
    await collector(store, blobs).collect()
    for told in (None, meta):  # by its address alone, and by its reference
        with pytest.raises(BadReference, match=r"was removed at 1970-04-11T00:00:00\+00:00: its scope is `step`"):
            await stored.value(blobs, ref("1"), told)
    assert await store.remove("1")
    await collector(store, blobs).collect()
    assert [name async for name, _ in blobs.stored()] == []  # the word about it goes with the log


async def test_what_has_expired_goes_whoever_refers_to_it(store: Store, blobs: MemoryBlobs) -> None:
    await execution(store, "1", named=(ref("1"), ref("1", "u")))
    await put(blobs, ref("1"), expires_at=NOW)
    await put(blobs, ref("1", "u"), expires_at=NOW + 1)
    await put(blobs, "noetl://mine/report", "permanent", expires_at=NOW - 1, artifact=True)
    assert await gone(store, blobs) == {ref("1"): "expired", "noetl://mine/report": "expired"}


async def test_the_results_of_removed_executions_go(store: Store, blobs: MemoryBlobs) -> None:
    await execution(store, "1", ended_at=NOW - 2 * DAY, named=(ref("1"), ref("1", "p")))
    await put(blobs, ref("1"))
    await put(blobs, ref("1", "p"), "permanent")
    assert await gone(store, blobs) == {}
    assert await store.remove("1")
    assert await gone(store, blobs) == {ref("1"): "removed"}
    assert [name async for name, _ in blobs.stored()] == [ref("1", "p")]


async def test_what_a_crashed_worker_left_goes_once_its_execution_has_ended(store: Store, blobs: MemoryBlobs) -> None:
    await execution(store, "1", ended_at=NOW - 2 * DAY, named=(ref("1"),))
    await execution(store, "2", named=(ref("2"),))
    for name in (ref("1"), ref("1") + "/delivery/2", ref("2") + "/delivery/2"):
        await put(blobs, name)
    await put(blobs, ref("1", "late"), stored_at=NOW - DAY + 1)
    await put(blobs, ref("1", "mine"), artifact=True)
    assert await gone(store, blobs) == {ref("1") + "/delivery/2": "unlogged"}


@pytest.mark.parametrize("scope", ["step", "execution"])
async def test_what_kin_under_way_may_read_stays(store: Store, blobs: MemoryBlobs, scope: str) -> None:
    old = NOW - 60 * DAY
    await execution(store, "1", ended_at=old, named=(ref("1"),))
    await execution(store, "2", forked_from={"execution_id": "1", "seq": 2})  # a fork that runs
    await execution(store, "3")  # a parent that runs
    await execution(store, "4", ended_at=old, named=(ref("4"),), parent={"execution_id": "3"})
    await execution(store, "5", ended_at=old, named=(ref("5"),))
    await execution(store, "6", ended_at=old, parent={"execution_id": "5"})
    await execution(store, "7", forked_from={"execution_id": "6", "seq": 1})  # a fork of a child
    await execution(store, "8", ended_at=old, named=(ref("8"),))
    for execution_id in "1458":
        await put(blobs, ref(execution_id), scope)
    assert list(await gone(store, blobs)) == [ref("8")]


async def test_a_fork_keeps_what_it_reads_of_a_removed_execution(store: Store, blobs: MemoryBlobs) -> None:
    old = NOW - 60 * DAY
    await execution(store, "1", ended_at=old, named=(ref("1"), ref("1", "other")))
    await execution(store, "2", ended_at=old, forked_from={"execution_id": "1", "seq": 2}, named=(ref("2"),))
    await execution(store, "3", forked_from={"execution_id": "2", "seq": 2}, named=(ref("1"),))
    for name in (ref("1"), ref("1", "other"), ref("2")):
        await put(blobs, name)
    assert await store.remove("2")
    assert list(await gone(store, blobs)) == [ref("1", "other")]


async def test_a_child_counts_from_the_end_of_its_parent(store: Store, blobs: MemoryBlobs) -> None:
    await execution(store, "1", ended_at=NOW - 5 * DAY)
    await execution(store, "2", ended_at=NOW - 60 * DAY, named=(ref("2"),), parent={"execution_id": "1"})
    await put(blobs, ref("2"))
    assert await gone(store, blobs) == {}


async def test_what_is_left_of_a_write_goes_after_a_while(store: Store, tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    await put(blobs, "noetl://mine/report", "permanent")
    (folder,) = (tmp_path / "blobs").iterdir()
    (folder / ".half").write_bytes(b"x")
    (folder / "lone").write_bytes(b"x")
    assert await blobs.tidy(0) == 0
    assert await blobs.tidy(2**53) == 2
    assert await stored.value(blobs, "noetl://mine/report") == {"n": 1}


async def test_it_goes_on_after_trouble(store: Store) -> None:
    class Away(MemoryBlobs):
        tries = 0

        async def tidy(self, before: int) -> int:
            self.tries += 1
            if self.tries == 1:
                raise StoreUnavailable("the disk is away")
            raise RuntimeError("enough")

    blobs = Away()
    with pytest.raises(RuntimeError, match="enough"):
        await collector(store, blobs, every_s=3600).run()
    assert blobs.tries == 2
    await collector(store, blobs).run()  # without an interval it does nothing
