"""Recorded histories fold to the same result in every later version."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.engine.state.evolve import fold
from noetl.model.events import EVENT_TYPES, SCHEMA_VERSION
from tests.replay.record import FOLDER, history, told

HISTORIES = sorted(FOLDER.glob("*.jsonl"))


@pytest.mark.parametrize("path", HISTORIES, ids=[path.stem for path in HISTORIES])
def test_a_recorded_history_folds_to_what_it_came_to(path: Path) -> None:
    head, events = history(path)
    assert head["version"] <= SCHEMA_VERSION
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert told(fold(head["execution_id"], events)) == head["told"]


def test_the_histories_hold_what_the_fold_of_an_execution_is_made_of() -> None:
    held = {event.event_type for path in HISTORIES for event in history(path)[1]}
    assert not {name for name in EVENT_TYPES if not name.startswith(_SELDOM)} - held


_SELDOM = (
    "report.",
    "task.logged",
    "step.forced",
    "step.repaired",
    "loop.item.",
    "playbook.corrected",
    "dlq.",
    "message.",
    "execution.repaired",
)
