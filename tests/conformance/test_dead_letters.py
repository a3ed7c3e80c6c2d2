"""Dead letters of every store: written with events, listed, grouped, pruned."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from noetl.model.letters import DeadLetter, LetterChange
from noetl.model.messages import ItemEnd, Report
from noetl.ports import Commit
from noetl.ports.letters import LetterSelection
from noetl.server.background.rebuild import Rebuild
from noetl.server.cache.plan_cache import PlanCache
from noetl.server.control_plane import LocalControlPlane
from noetl.server.operations.dead_letters import ready, replay
from tests.conformance.commits import commit
from tests.conformance.conftest import Place, Store
from tests.unit.server.system import HEAD, RealClock, begin, register, report_on

pytestmark = pytest.mark.asyncio


def letter(name: str, execution: str = "1", at: int = 1_000, **rest: Any) -> DeadLetter:
    given: dict[str, Any] = {
        "fingerprint": "aa",
        "step_id": "load",
        "run_id": "load#1",
        "reason": "fatal",
        "attempts": 1,
    } | rest
    made: dict[str, Any] = {"last_error": "no such row", "first_seen": at - 10, "last_seen": at, **given}
    return DeadLetter(message_id=f"{execution}-{name}", execution_id=execution, **made)


def puts(*letters: DeadLetter, execution: str = "1", at: int = 0, **rest: Any) -> Commit:
    changes = tuple(LetterChange(one.message_id, one.status, one.last_seen, one) for one in letters)
    return commit(execution, at, letters=changes, **rest)


async def test_a_letter_is_kept_whole(store: Store) -> None:
    whole = letter(
        "a",
        path="p",
        loop_index=2**40,
        loop_key="k\u00e9",
        task="t",
        tool_kind="http",
        sink_id="postgres:x",
        replays=2,
        last_stack="Traceback\n  …",
        payload={"spec": {"url": "http://x/\u0001"}, "n": [1, None, 2.5]},
        context_excerpt='"ctx": {}',
        error={"kind": "client_error", "details": {"a": [1]}},
    )
    await store.commit([puts(whole)])
    assert await store.letter("1-a") == whole
    assert await store.letter("1-b") is None
    assert await store.letters(LetterSelection()) == [whole]


async def test_a_letter_comes_with_its_commit_or_not_at_all(store: Store) -> None:
    await store.commit([commit("1", 0)])
    receipt = await store.commit([puts(letter("a"), at=0), puts(letter("b", "2"), execution="2")])
    assert [verdict.status for verdict in receipt.commits] == ["stale", "applied"]
    assert [found.message_id for found in await store.letters(LetterSelection())] == ["2-b"]


async def test_a_letter_that_fails_again_is_the_same_letter(store: Store) -> None:
    await store.commit([puts(letter("a"))])
    again = letter("a", at=2_000, attempts=3, replays=1, first_seen=990, last_error="still no such row")
    await store.commit([puts(again, at=1)])
    assert await store.letters(LetterSelection()) == [again]


async def test_what_becomes_of_a_letter(store: Store) -> None:
    await store.commit([puts(letter("a"))])
    for at, status, closed in ((1, "replaying", None), (2, "discarded", 5_002)):
        change = LetterChange("1-a", status, 5_000 + at, None, "ada", "why")
        await store.commit([commit("1", at, letters=(change,))])
        found = await store.letter("1-a")
        assert found == replace(letter("a"), status=status, closed_at=closed, closed_by="ada", note="why")
    await store.commit([commit("1", 3, letters=(LetterChange("1-x", "discarded", 1),))])
    assert await store.letter("1-x") is None


async def test_changes_of_one_batch_are_applied_in_order(store: Store) -> None:
    closing = LetterChange("1-a", "replayed", 7_000, None, "ada")
    await store.commit([puts(letter("a")), commit("1", 1, letters=(closing,))])
    found = await store.letter("1-a")
    assert found is not None
    assert (found.status, found.closed_at, found.last_error) == ("replayed", 7_000, "no such row")
    opened = LetterChange("1-a", "replaying", 8_000, None, "ada")
    again = LetterChange("1-a", "pending", 9_000, letter("a", at=9_000))
    await store.commit([commit("1", 2, letters=(opened,)), commit("1", 3, letters=(again,))])
    assert await store.letter("1-a") == letter("a", at=9_000)


async def test_letters_are_selected_and_paged(store: Store) -> None:
    made = [
        letter("a", at=1_000, path="p", tool_kind="http"),
        letter("b", at=3_000, path="p", step_id="save", fingerprint="bb"),
        letter("c", at=3_000, status="discarded", closed_at=1),
    ]
    await store.commit([puts(*made), puts(letter("d", "2", 2_000), execution="2")])

    async def ids(**asked: Any) -> list[str]:
        return [one.message_id for one in await store.letters(LetterSelection(**asked))]

    assert await ids() == ["1-c", "1-b", "2-d", "1-a"]
    assert await ids(limit=2) == ["1-c", "1-b"]
    assert await ids(before="1-b", limit=1) == ["2-d"]
    assert await ids(before="1-a") == []
    assert await ids(before="9-none") == []
    assert await ids(status=("pending",)) == ["1-b", "2-d", "1-a"]
    assert await ids(status=("discarded", "replayed")) == ["1-c"]
    assert await ids(execution_id="2") == ["2-d"]
    assert await ids(execution_id="none") == []
    assert await ids(path="p", step_id="load") == ["1-a"]
    assert await ids(tool_kind="http") == ["1-a"]
    assert await ids(fingerprint="bb", status=("pending",)) == ["1-b"]


async def test_letters_are_grouped_by_cause(store: Store) -> None:
    first = [letter("a"), letter("b", at=5_000, last_error="the last one"), letter("c", fingerprint="cc", path="p")]
    other = letter("d", "2", 4_000)
    await store.commit([puts(*first), puts(other, execution="2")])
    groups = await store.letter_groups(LetterSelection(status=("pending",)))
    assert [(row["fingerprint"], row["count"], row["executions"]) for row in groups] == [("aa", 3, 2), ("cc", 1, 1)]
    assert {name: groups[0][name] for name in ("message_id", "last_error", "first_seen", "last_seen")} == {
        "message_id": "1-b",
        "last_error": "the last one",
        "first_seen": 990,
        "last_seen": 5_000,
    }
    assert groups[1]["path"] == "p"
    assert len(await store.letter_groups(LetterSelection(limit=1))) == 1


async def test_closed_letters_are_pruned_and_open_ones_stay(store: Store) -> None:
    rows = [letter("a"), letter("b", status="replayed", closed_at=100), letter("c", status="discarded", closed_at=200)]
    await store.commit([puts(*rows)])
    assert dict(await store.letter_counts()) == {"pending": 1, "replayed": 1, "discarded": 1}
    assert await store.prune_letters(200) == 1
    assert {one.message_id for one in await store.letters(LetterSelection())} == {"1-a", "1-c"}


async def test_letters_go_with_their_execution(place: Place, store: Store) -> None:
    ended = {"status": "failed", "ended_at": 5}
    await store.commit([puts(letter("a"), projection=ended), puts(letter("b", "12"), execution="12")])
    assert await store.remove("1")
    assert [one.message_id for one in await store.letters(LetterSelection())] == ["12-b"]


async def test_letters_are_taken_out_and_put_in_again(place: Place, store: Store) -> None:
    rows = (letter("a"), letter("b", payload={"x": 1}))
    await store.commit([puts(*rows)])
    derived = place.derived(store)
    assert await derived.letters_of("1") == list(rows)
    before = replace(await derived.rows("1"), letters=rows)
    await derived.empty(1)
    assert await store.letters(LetterSelection()) == []
    await derived.put_rows([before])
    assert await derived.letters_of("1") == list(rows)


LOOP = (
    HEAD
    + """
workflow:
  - step: work
    loop: {in: [a, b], iterator: x, spec: {policy: {failure: {mode: best_effort}}}}
    tool: {kind: noop}
"""
)


async def test_a_replay_is_made_again_from_the_log_and_goes_on(place: Place, store: Store) -> None:
    rebuild = Rebuild(store, place.derived(store), PlanCache(store))
    error = {"kind": "client_error", "message": "no"}
    async with LocalControlPlane(store, RealClock()) as control:
        await begin(control, await register(store, LOOP), "700")
        [lease] = await control.claim("w", ("",), 1, 5)
        ends = (ItemEnd(0, "ok", "A"), ItemEnd(1, "error", error=error))
        await report_on(control, "700", Report("r1", "work#1", lease.epoch, "w", items=ends, chunk="c1"))
        [found] = await store.letters(LetterSelection())
        again = await ready(store, control, [found], {}, {})
        assert await replay(control, again, {}, by="ada", name="one") == 1
        assert await rebuild.check() == []
    assert await rebuild.rebuild() == 1
    assert await rebuild.check() == []
    assert [one.status for one in await store.letters(LetterSelection())] == ["replaying"]
    async with LocalControlPlane(store, RealClock()) as control:
        assert await replay(control, again, {}, by="ada", name="one") == 1  # the same request again
        [lease] = await control.claim("w", ("",), 9, 5)
        chunk = lease.work.chunk
        assert chunk is not None
        done = (ItemEnd(1, "ok", "B"),)
        report = Report("r2", lease.work.run_id, lease.epoch, "w", items=done, chunk=chunk.chunk_id)
        await report_on(control, "700", report)
        assert await rebuild.check() == []
    row = await store.execution("700")
    assert row is not None
    assert (row["status"], row["result"]["results"]) == ("completed", ["A", "B"])
    assert [one.status for one in await store.letters(LetterSelection())] == ["replayed"]


async def test_letters_of_namespaces_are_listed_and_grouped(store: Store) -> None:
    await store.commit(
        [puts(letter("a", path="a/x"), letter("b", path="ab/x"), letter("c", path="b/x", fingerprint="bb"))]
    )
    within = LetterSelection(within=("a/", "b/"))
    assert [one.message_id for one in await store.letters(within)] == ["1-c", "1-a"]
    assert [one.message_id for one in await store.letters(replace(within, before="1-b"))] == ["1-a"]
    assert [(one["fingerprint"], one["count"]) for one in await store.letter_groups(within)] == [("aa", 1), ("bb", 1)]
    assert await store.letters(LetterSelection(within=())) == []
