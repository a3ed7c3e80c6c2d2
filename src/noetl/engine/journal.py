"""What a pipeline records of a task: that it began, how its attempts and itself ended, and what its policy decided.

An event is written only when it says something: attempts only where there is more than one, verdicts only where there are
rules, and of an item of a loop only what went wrong. Tested in tests/unit/engine/test_pipeline_records.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.engine.frame import Frame
from noetl.engine.rules import Verdict
from noetl.model.messages import Record
from noetl.model.outcome import Outcome


def begun(frame: Frame, at: int) -> Record:
    """Give the record of an attempt that begins."""
    attempt = frame.memory.attempt
    if attempt > 1:
        return _record(frame, "task.attempt.started", at, attempt)
    return Record("task.started", at, frame.named, frame.key, frame.info.index, payload=frame.plan.told)


def allowed(records: list[Record], key: str, timeout_ms: float) -> None:
    """Note in the record of an attempt that has just begun, if there is one, how long it may take."""
    last = records[-1] if records else None
    if last is not None and last.task_run_id == key and last.event_type in ("task.started", "task.attempt.started"):
        records[-1] = msgspec.structs.replace(last, payload={**last.payload, "timeout_ms": timeout_ms})


def settled(frame: Frame, outcome: Outcome, verdict: Verdict, at: int) -> list[Record]:
    """Give the records of an attempt that ended, and of what it leads to."""
    memory = frame.memory
    found = []
    well = outcome.status == "ok"
    payload: dict[str, Any] = {"started_at": memory.began}
    if outcome.error is not None:
        payload["error"] = msgspec.to_builtins(outcome.error)
    took = {"status": outcome.status, "duration_ms": float(at - memory.began)}
    if memory.attempt > 1 or verdict.do == "retry":
        name = "task.attempt.done" if well else "task.attempt.failed"
        more = {"delay_ms": verdict.delay_ms} if verdict.do == "retry" else {}
        found.append(_record(frame, name, at, memory.attempt, payload={**payload, **more}, **took))
    usual = well and verdict.do == "continue"
    if frame.task.rules is not None and not (usual and frame.is_quiet):
        found.append(_record(frame, "policy.task.evaluated", at, memory.attempt, payload=verdict.payload()))
    if verdict.do != "retry" and not (well and frame.is_quiet):
        payload["started_at"] = memory.first_began
        took["duration_ms"] = float(at - memory.first_began)
        found.append(
            _record(frame, "task.done" if well else "task.failed", at, memory.attempt, payload=payload, **took)
        )
    return found


def paged(frame: Frame, pages: Mapping[str, Any], at: int) -> list[Record]:
    """Give the record of a page that was added; of an item of a loop only where it was put away."""
    part = pages["parts"][-1]
    if "ref" not in part and frame.is_quiet:
        return []
    told = {name: pages[name] for name in ("strategy", "merge_path", "total")}
    told |= {"pages": len(pages["parts"]), "bytes": part["meta"].get("bytes"), "part": part.get("ref")}
    return [_record(frame, "result.manifest.updated", at, frame.memory.attempt, payload=told)]


def done_at_once(frame: Frame, at: int) -> Record:
    """Give the only record of a task without a policy whose first attempt succeeded, of all that `settled` may give."""
    began = frame.memory.first_began
    told = {"started_at": began}
    return Record("task.done", at, frame.named, frame.key, frame.info.index, 1, "ok", float(at - began), told)


def _record(frame: Frame, name: str, at: int, attempt: int | None = None, **more: Any) -> Record:
    return Record(
        name, at, task=frame.named, task_run_id=frame.key, iteration=frame.info.index, attempt=attempt, **more
    )
