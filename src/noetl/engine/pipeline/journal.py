"""Records of tasks: their start and end, retried attempts, policy decisions.

A lone attempt has no attempt events; a loop item records only failures. Tested in tests/unit/engine/pipeline/test_journal.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from noetl.engine.tasks.policy_rules import Verdict
from noetl.engine.tasks.task_scope import Frame
from noetl.model.messages import Record
from noetl.model.outcome import Outcome


def attempt_started(frame: Frame, at: int) -> Record:
    """Return the record of an attempt that begins."""
    attempt, key, index = frame.memory.attempt, frame.key, frame.info.index
    if attempt > 1:
        return Record("task.attempt.started", at, frame.named, key, index, attempt)
    return Record("task.started", at, frame.named, key, index, payload=frame.plan.told)


def note_timeout(records: list[Record], key: str, timeout_ms: float) -> None:
    """Add the time-out of an attempt that has just begun to its record, if it has one."""
    last = records[-1] if records else None
    if last is not None and last.task_run_id == key and last.event_type in ("task.started", "task.attempt.started"):
        records[-1] = msgspec.structs.replace(last, payload={**last.payload, "timeout_ms": timeout_ms})


def attempt_ended(frame: Frame, outcome: Outcome, verdict: Verdict, at: int) -> list[Record]:
    """Return the records of an attempt that ended, and of what it leads to."""
    memory, name, key, index = frame.memory, frame.named, frame.key, frame.info.index
    attempt, status, is_ok = memory.attempt, outcome.status, outcome.status == "ok"
    records: list[Record] = []
    told = {} if outcome.error is None else {"error": msgspec.to_builtins(outcome.error)}
    told |= {"remote": outcome.meta["remote"]} if "remote" in outcome.meta else {}
    if attempt > 1 or verdict.do == "retry":
        event_type = "task.attempt.done" if is_ok else "task.attempt.failed"
        payload = {"started_at": memory.began, **told}
        payload |= {"delay_ms": verdict.delay_ms} if verdict.do == "retry" else {}
        took = float(at - memory.began)
        records.append(Record(event_type, at, name, key, index, attempt, status, took, payload))
    expected = is_ok and verdict.do == "continue"
    if frame.task.rules is not None and not (expected and frame.is_quiet):
        payload = verdict.payload()
        records.append(Record("policy.task.evaluated", at, name, key, index, attempt, payload=payload))
    if verdict.do != "retry" and not (is_ok and frame.is_quiet):
        payload = {"started_at": memory.first_began, **told}
        took = float(at - memory.first_began)
        event_type = "task.done" if is_ok else "task.failed"
        records.append(Record(event_type, at, name, key, index, attempt, status, took, payload))
    return records


def page_added(frame: Frame, pages: Mapping[str, Any], at: int) -> list[Record]:
    """Return the record of a page; an item of a loop records only stored pages."""
    part = pages["parts"][-1]
    if "ref" not in part and frame.is_quiet:
        return []
    payload = {name: pages[name] for name in ("strategy", "merge_path", "total")}
    payload |= {"pages": len(pages["parts"]), "bytes": part["meta"].get("bytes"), "part": part.get("ref")}
    event_type, attempt = "result.manifest.updated", frame.memory.attempt
    return [Record(event_type, at, frame.named, frame.key, frame.info.index, attempt, payload=payload)]
