"""Each value knows who wrote it, when, and how often."""

from __future__ import annotations

from typing import Any

from noetl.engine.queries.history.variables import VariableFacts, Variables
from noetl.model.events import Event


def event(seq: int, kind: str, payload: dict[str, Any], run: str | None = None) -> Event:
    return Event(f"e{seq}", "1", seq, kind, seq * 100, step_run_id=run, payload=payload)


def test_the_last_writer_and_the_first_time_are_known() -> None:
    variables = Variables()
    for one in (
        event(1, "ctx.patched", {"writes": {"total": 1, "user.name": "ada"}, "by": "load#1"}),
        event(2, "step.done", {"writes": {"total": 2}}, "load#1"),  # not applied yet
        event(3, "ctx.patched", {"writes": {"user.age": 36, "user.city": "Paris"}, "by": "load#1→save"}),
        event(4, "loop.iteration.done", {"writes": {"total": 5}}, "sum#1"),
        event(5, "signal.received", {"name": "paid", "data": {}}),
    ):
        variables.add(one)
    assert variables.found == {
        "total": VariableFacts(100, 400, 4, 2, "sum#1"),
        "user": VariableFacts(100, 300, 3, 2, "load#1→save"),
        "signals": VariableFacts(500, 500, 5, 1, "signal:paid"),
    }
