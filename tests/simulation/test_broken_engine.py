"""Prove that the invariants catch a broken engine: without a rule some seed fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from noetl.engine.decision.builder import Decision, DecisionBuilder
from noetl.engine.queries import projections
from noetl.engine.routing import admit, flow, loops
from noetl.engine.state.execution import Loop
from noetl.model.events import Event
from tests.simulation.invariants import effects_happened
from tests.simulation.seed import SeedError, play

_SEEDS = 80
Break = Callable[[pytest.MonkeyPatch], None]


def no_bound_of_runs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admit, "has_room", lambda _d: True)


def one_item_too_many(patch: pytest.MonkeyPatch) -> None:
    right = loops._next_range

    def wrong(loop: Loop, left: int) -> tuple[int, int]:
        count, width = right(loop, left)
        return (count, width) if count else (1, 1)

    patch.setattr(loops, "_next_range", wrong)


def joins_that_wait_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(flow, "deadlocked", lambda _waiting: None)


def gates_that_never_open(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(admit, "retry", lambda _d: False)


def ends_that_nobody_sees(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(flow, "_settle", lambda _d: False)


def items_that_end_twice(patch: pytest.MonkeyPatch) -> None:
    right = DecisionBuilder.emit

    def wrong(self: DecisionBuilder, kind: str, *given: Any, **more: Any) -> Event:
        event = right(self, kind, *given, **more)
        return right(self, kind, *given, **more) if kind == "loop.iteration.done" else event

    patch.setattr(DecisionBuilder, "emit", wrong)


def a_state_that_no_event_tells(patch: pytest.MonkeyPatch) -> None:
    right = DecisionBuilder.emit

    def wrong(self: DecisionBuilder, *given: Any, **more: Any) -> Event:
        self.state.numbers["secret"] = len(self.events) + 1
        return right(self, *given, **more)

    patch.setattr(DecisionBuilder, "emit", wrong)


def timers_that_stay(patch: pytest.MonkeyPatch) -> None:
    right = DecisionBuilder.build

    def wrong(self: DecisionBuilder) -> Decision:
        made = right(self)
        return msgspec.structs.replace(made, cleared=())

    patch.setattr(DecisionBuilder, "build", wrong)


def work_that_stays(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DecisionBuilder, "drop_work", lambda _self, _run: None)


def work_that_is_not_made_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(projections, "work", lambda *_: [])


def _play_all(known: int) -> None:
    """Play the seed that showed it before, then the others."""
    for seed in (known, *range(_SEEDS)):
        play(seed)


@pytest.mark.parametrize(
    ("broken", "words", "known"),
    [
        (no_bound_of_runs, "more runs than `max_parallel`", 12),
        (one_item_too_many, "items are in flight", 1),
        (joins_that_wait_for_ever, "stalled is True, and it is running", 16),
        (gates_that_never_open, "moves nothing", 8),
        (ends_that_nobody_sees, "it is quiescent and has not ended", 0),
        (items_that_end_twice, "an issued item was lost", 0),
        (a_state_that_no_event_tells, "replay is not live", 0),
        (timers_that_stay, "timers are left", 17),
        (work_that_stays, "work is left", 0),
        (work_that_is_not_made_again, "it neither ends nor waits", 11),
    ],
)
def test_a_broken_engine_is_seen(broken: Break, words: str, known: int, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch)
    with pytest.raises(SeedError, match=words):
        _play_all(known)


def test_work_that_is_done_twice_without_a_reason_is_seen() -> None:
    effects_happened({}, Counter({("k", 1): 1}), calm=True)
    with pytest.raises(AssertionError):
        effects_happened({}, Counter({("k", 1): 2}), calm=True)


def test_a_task_that_is_done_and_never_ran_is_seen() -> None:
    said = Event("1", "e", 1, "task.done", 0, task_run_id="k", step_run_id="a#1")
    effects_happened({"e": [said]}, Counter({("k", 1): 1}), calm=True)
    with pytest.raises(AssertionError):
        effects_happened({"e": [said]}, Counter(), calm=False)
