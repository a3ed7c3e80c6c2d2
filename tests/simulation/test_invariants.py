"""Proves that each invariant can fail: a log that is tampered with does not pass."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from noetl.model.events import Event
from noetl.ports import DerivedRows
from noetl.testing.play import play
from noetl.testing.virtual_time import BEGIN
from tests.simulation.invariants import check_all

BOOK = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: t, path: t}
workflow:
  - {step: a, tool: {kind: noop}, next: [b, c]}
  - {step: b, tool: {kind: noop}, next: d}
  - {step: c, loop: {in: [1, 2, 3], iterator: n}, tool: {kind: noop}, next: d}
  - {step: d, tool: {kind: noop}}
"""
Change = Callable[[list[Event]], list[Event]]


def numbered(events: list[Event]) -> list[Event]:
    return [
        msgspec.structs.replace(event, seq=number, event_id=str(number), timestamp=BEGIN)
        for number, event in enumerate(events, 1)
    ]


def without(kind: str) -> Change:
    def change(events: list[Event]) -> list[Event]:
        gone = next(event for event in reversed(events) if event.event_type == kind)
        return numbered([event for event in events if event is not gone])

    return change


def twice(kind: str) -> Change:
    def change(events: list[Event]) -> list[Event]:
        again = next(event for event in events if event.event_type == kind)
        return numbered([*events, again])

    return change


def log() -> tuple[str, list[Event]]:
    script = play(BOOK)
    return script.state.execution_id, script.events


def test_an_honest_log_passes() -> None:
    execution_id, events = log()
    check_all(execution_id, events, DerivedRows(execution_id, len(events)))
    check_all(execution_id, numbered(events), DerivedRows(execution_id, len(events)))


@pytest.mark.parametrize(
    "change",
    [
        without("step.done"),
        without("loop.iteration.done"),
        without("step.scheduled"),
        without("playbook.finished"),
        twice("step.done"),
        twice("token.created"),
        twice("loop.iteration.done"),
        twice("next.evaluated"),
        lambda events: events[:-3],
        lambda events: [*events[:4], *events[5:]],
        lambda events: [*events, events[-1]],
    ],
)
def test_a_log_that_was_tampered_with_fails(change: Change) -> None:
    execution_id, events = log()
    with pytest.raises(AssertionError):
        check_all(execution_id, change(events), DerivedRows(execution_id, len(events)))
