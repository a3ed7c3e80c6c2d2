"""Traces of the log: all spans of an execution, with its parents and children.

Tested in tests/observe/test_traces.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from noetl.dsl.tree.pin import unpinned
from noetl.engine.plan.plan import Plan, plan
from noetl.model.errors import UnknownExecution
from noetl.model.events import Event
from noetl.observe.traces.spans import Span, TraceFold, spans_of


class Log(Protocol):
    """Events and playbooks, of a store or of a server."""

    async def read(self, execution_id: str, after: int = 0, limit: int | None = None) -> list[Event]: ...

    async def canonical(self, playbook: str) -> bytes | None: ...


async def read_trace(log: Log, execution_id: str, settings: Mapping[str, Any] | None = None) -> list[Span]:
    """Return the spans of the trace that an execution belongs to, the root first.

    Raises UnknownExecution.
    """
    found: list[Span] = []
    waiting = [(await _root(log, execution_id), "")]
    while waiting:
        name, outer = waiting.pop(0)
        events = await log.read(name)
        if not events:
            continue  # a child that waits for its start, or was deleted
        fold = TraceFold(name, await _plan(log, str(events[0].payload.get("playbook", ""))), settings, outer)
        found += spans_of(fold, events)
        waiting += fold.children.items()
    return sorted(found, key=lambda span: (span.start, span.parent_id != ""))


async def _root(log: Log, execution_id: str) -> str:
    """Return the execution that started all others of a trace."""
    name, seen = execution_id, set[str]()
    while name not in seen:
        seen.add(name)
        events = await log.read(name, 0, 1)
        if not events and name == execution_id:
            raise UnknownExecution(name)
        parent = (events[0].payload.get("parent") or {}) if events else {}
        if "run_id" not in parent:
            return name if events else execution_id
        name = str(parent["execution_id"])
    return execution_id


async def _plan(log: Log, playbook: str) -> Plan | None:
    data = await log.canonical(playbook) if playbook else None
    return None if data is None else plan(unpinned(data), playbook)
