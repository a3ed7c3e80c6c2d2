"""Ids: 64-bit snowflakes for executions, readable names inside one.

Deciding a message again yields the same ids: they are derived from the execution's state. Tested in tests/conformance.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NewType

ExecutionId = NewType("ExecutionId", str)  # a snowflake, as a numeric text
RunId = NewType("RunId", str)  # `<step>#<number>`, numbers from 1

EPOCH_MS = 1_704_067_200_000  # 2024-01-01: snowflakes stay below 2**63 until 2093
_MACHINE_BITS = 10
_COUNTER_BITS = 12
_MACHINE_MASK = (1 << _MACHINE_BITS) - 1
_COUNTER_MASK = (1 << _COUNTER_BITS) - 1


def snowflake(at_ms: int, machine: int, counter: int) -> ExecutionId:
    """Return an execution id; ids of one machine grow with time."""
    stamp = at_ms - EPOCH_MS << _MACHINE_BITS | machine & _MACHINE_MASK
    return ExecutionId(str(stamp << _COUNTER_BITS | counter & _COUNTER_MASK))


def run_id(step: str, number: int) -> RunId:
    return RunId(f"{step}#{number}")


def job(execution_id: str) -> dict[str, str]:
    """Return what templates read as `job`."""
    return {"uuid": execution_id, "execution_id": execution_id}


def event_id(message_id: str, ordinal: int) -> str:
    """Derive the id of an event from the message that caused it."""
    return f"{message_digest(message_id)}.{ordinal}"


def message_digest(message_id: str) -> str:
    """Return the prefix of a message's event ids, which detects a second apply."""
    return blake2b(message_id.encode(), digest_size=16).hexdigest()


def run_key(execution_id: str, step: str, number: int, item: str | int | None = None) -> str:
    """Return the key prefix of a run or loop item; the first run has no number."""
    run = step if number == 1 else f"{step}#{number}"
    return f"{execution_id}:{run}" if item is None else f"{execution_id}:{run}:{item}"


def idempotency_key(run: str, task: str, visit: int = 1, sink: str | None = None) -> str:
    """Return the key of a task, the same for every retry and redelivery.

    `run` is the key of its run, or of the workbook call around it. The first visit of a task has no number.
    """
    key = f"{run}:{task}" if visit == 1 else f"{run}:{task}#{visit}"
    return key if sink is None else f"{key}:{sink}"
