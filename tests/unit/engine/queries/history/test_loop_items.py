"""The items of a loop: their marks agree with the counters of the fold."""

from __future__ import annotations

import pytest

from noetl.engine.queries.history.loop_items import Items
from noetl.engine.state.evolve import fold
from noetl.model.messages import Suspension
from noetl.testing.play import Hold, Said, Script

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: p, path: p}\nworkflow:\n"
LOOP = """\
- step: a
  loop:
    in: '{{ range(6) | list }}'
    iterator: i
    spec: {mode: MODE, max_in_flight: 3, policy: {failure: {mode: best_effort}}}
  tool: {kind: noop}
"""
BAD = Said(error={"kind": "unknown", "message": "no"})
RESTS = Said(suspend=Suspension("wait", {}, signal="go"))


def played(mode: str, *outcomes: object) -> Script:
    return Script(HEAD + LOOP.replace("MODE", mode), {"a": list(outcomes)}, payload={}).run(timers=False)


def collected(script: Script, to: int | None = None) -> Items:
    items = Items("a#1")
    events = script.events[:to]
    for event in events:
        items.add(event)
    return items.at(fold(script.state.execution_id, events))


def test_every_item_has_one_mark() -> None:
    items = collected(played("parallel", 1, BAD, RESTS, Hold(), Hold(), Hold()))
    assert items.marks.decode() == "dfwqq."
    assert items.counts() == {"done": 1, "failed": 1, "waiting": 1, "queued": 2, "not issued": 1}


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
def test_counts_are_those_of_the_fold_after_every_event(mode: str) -> None:
    script = played(mode, 1, BAD, 3, RESTS, BAD, Hold())
    for number in range(1, len(script.events) + 1):
        run = fold(script.state.execution_id, script.events[:number]).runs.get("a#1")
        if run is None or run.loop is None:
            continue
        loop, counts = run.loop, collected(script, number).counts()
        assert sum(counts.values()) == loop.total
        assert (counts.get("done", 0), counts.get("failed", 0)) == (loop.succeeded, loop.failed)
        in_flight = sum(len(piece.pending) for piece in loop.pieces.values())
        assert counts.get("queued", 0) + counts.get("running", 0) == in_flight
        assert counts.get("waiting", 0) == len(loop.suspended)


def test_a_page_has_the_wanted_states_and_starts_after_the_last() -> None:
    items = collected(played("parallel", 1, BAD, 3, BAD, 5, BAD))
    failed = items.page(("failed",), False, 0, 2)
    assert [(one.index, one.state, one.error) for one in failed] == [(1, "failed", "no"), (3, "failed", "no")]
    assert [one.index for one in items.page(("failed",), False, 2, 2)] == [5]
    slow = items.page((), True, 0, 10)
    assert sorted(one.index for one in slow) == list(range(6))
    spans = [one.duration_ms or 0 for one in slow]
    assert spans == sorted(spans, reverse=True)


def test_ranges_count_all_items() -> None:
    items = collected(played("parallel", 1, BAD, 3, BAD, 5, BAD))
    assert [(one.start, one.count) for one in items.ranges()] == [(number, 1) for number in range(6)]
    assert items.ranges()[1].states == {"failed": 1}
