"""Event types: each is emitted, and its older names work in conditions."""

from __future__ import annotations

from pathlib import Path

import pytest

import noetl
from noetl.dsl.analysis.outcomes import ROUTING_EVENTS
from noetl.engine.decision.scope import EventName
from noetl.model.events import EVENT_TYPES, names_of

SOURCE = Path(noetl.__file__).parent


def test_every_event_type_is_emitted() -> None:
    emitting = [file for part in ("engine", "server", "worker") for file in (SOURCE / part).rglob("*.py")]
    reading = {SOURCE / "engine" / "state", SOURCE / "engine" / "queries"}
    text = "".join(file.read_text(encoding="utf-8") for file in emitting if file.parent not in reading)
    assert [name for name in EVENT_TYPES if f'"{name}"' not in text] == []


@pytest.mark.parametrize("name", ["step.done", "step.failed", "loop.done"])
def test_conditions_know_every_older_name(name: str) -> None:
    for older in names_of(name):
        assert EventName(name) == older
        assert older in ROUTING_EVENTS


def test_the_end_of_a_loop_is_the_end_of_its_step_under_every_name() -> None:
    assert [older for older in names_of("step.done") if EventName("loop.done") != older] == []
