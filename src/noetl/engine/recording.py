"""Records what workers saw: the events of their tasks, and that a report came too late.

Tested in tests/unit/engine/test_recording.py and test_decide.py.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from noetl.engine.decision import Deciding
from noetl.engine.state import StepRun
from noetl.model.events import EVENT_TYPES
from noetl.model.messages import Report


def late(d: Deciding, message: Report) -> None:
    """Record that a report came from a worker that had lost its lease."""
    payload: dict[str, Any] = {"worker": message.worker, "epoch": message.epoch}
    payload |= {"chunk": message.chunk} if message.chunk is not None else {}
    payload |= {"ending": message.ending.status} if message.ending is not None else {}
    d.emit("report.late", message.run_id.partition("#")[0], payload, step_run_id=message.run_id)


def record(d: Deciding, run: StepRun, message: Report) -> None:
    """Record the events of a report; the last one of a report on the way says where the pipeline stands."""
    records = message.records
    if message.pipeline is not None and message.ending is None and message.suspension is None:
        records = tuple([record for record in records if record.event_type in EVENT_TYPES])
        if records:
            payload = {**records[-1].payload, "pipeline": message.pipeline}
            records = (*records[:-1], replace(records[-1], payload=payload))
    d.record(run, records)
