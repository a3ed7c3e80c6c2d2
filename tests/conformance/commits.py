"""Builders of commits, events, work items and messages."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from noetl.model.events import Event
from noetl.model.ids import event_id
from noetl.model.messages import AnyMessage, LeaseLost, Signal
from noetl.model.work import Chunk, Lease, WorkItem
from noetl.ports import Commit, EventLog, Receipt


def event(execution: str, seq: int, message: str = "", payload: Any = None, ordinal: int = 0) -> Event:
    name = event_id(message or f"{execution}/{seq}", ordinal)
    return Event(name, execution, seq, "ctx.patched", 1_000 + seq, entity_type="ctx", payload=payload or {})


def commit(execution: str = "1", at: int = 0, count: int = 1, message: str = "", **rest: Any) -> Commit:
    """A commit of `count` events after `at`, with an id per message."""
    message = message or f"{execution}/{at}"
    events = tuple(event(execution, at + 1 + number, message, ordinal=number) for number in range(count))
    return Commit(execution, at, events, **rest)


def work(name: str, *, execution: str = "1", chunk: str | None = None, **rest: Any) -> WorkItem:
    part = None if chunk is None else Chunk(chunk, 0, ("a",), 1)
    scopes = rest.pop("scopes", {"ctx": {"name": name}})
    return WorkItem(f"{execution}:{name}", execution, f"{name}#1", name, 1, "hash", scopes, part, **rest)


def put(*items: WorkItem, execution: str = "1", at: int = 0) -> Commit:
    return commit(execution, at, work=items)


def signal(name: str) -> AnyMessage:
    return Signal(f"message-{name}", name, {"n": 1})


async def snapshot_of(log: EventLog, execution_id: str, version: int) -> tuple[int, bytes] | None:
    """Return seq and state of a snapshot."""
    [saved] = await log.saved_states([execution_id], version, 1)
    return saved.snapshot


def without_epochs(found: Any) -> Any:
    """Return a store's answer where all leases have one epoch: stores may leave gaps."""
    match found:
        case Lease():
            return replace(found, epoch=0)
        case Receipt():
            return replace(found, leases=without_epochs(found.leases))
        case LeaseLost():
            return replace(found, epoch=0, message_id=found.message_id.rpartition(":")[0])
        case list() | tuple():
            return [without_epochs(one) for one in found]
    return found
