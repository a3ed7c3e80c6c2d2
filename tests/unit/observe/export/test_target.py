"""The record of an event: its step, status and error."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.model.events import EVENT_TYPES, Event
from noetl.observe.export.target import Exported


def exported(event_type: str, **more: Any) -> Exported:
    return Exported.of(Event("e.1", "7", 1, event_type, 1, **more), "a/b")


@pytest.mark.parametrize(
    ("event_type", "status", "expected"),
    [
        ("step.started", None, "STARTED"),
        ("step.done", "ok", "COMPLETED"),
        ("step.failed", "error", "FAILED"),
        ("playbook.finished", "completed", "COMPLETED"),
        ("playbook.finished", "failed", "FAILED"),
        ("execution.cancelled", None, "FAILED"),
        ("ctx.patched", None, ""),
    ],
)
def test_the_status_is_one_of_three(event_type: str, status: str | None, expected: str) -> None:
    assert exported(event_type, status=status).status == expected


@pytest.mark.parametrize("event_type", EVENT_TYPES)
def test_every_event_has_a_status_or_none(event_type: str) -> None:
    assert exported(event_type).status in ("STARTED", "COMPLETED", "FAILED", "")


def test_names_and_errors_are_taken_out_of_the_event() -> None:
    one = exported("step.failed", step_run_id="fetch#2", payload={"error": {"kind": "timeout", "message": "late"}})
    assert (one.name, one.step, one.error_class, one.error_message) == ("StepFailed", "fetch", "TimeoutError", "late")
    assert one.payload == '{"error":{"kind":"timeout","message":"late"}}'
    two = exported("made.elsewhere")
    assert (two.name, two.step, two.error_class, two.error_message, two.payload) == ("made.elsewhere", "", "", "", "{}")
