"""Rows of triggers in SQL. Tested in tests/conformance/test_triggers.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from noetl.ports.triggers import StoredTrigger


def trigger_row(trigger: StoredTrigger) -> tuple[Any, ...]:
    """Encode a trigger without its revision, in the order of `put_trigger`."""
    spec = msgspec.json.encode(trigger.spec).decode()
    what = (trigger.kind, trigger.trigger_id, trigger.path, spec, trigger.version, trigger.owner, trigger.paused)
    return (*what, trigger.created_at, trigger.created_by, trigger.changed_at)


def trigger_of(row: Sequence[Any]) -> StoredTrigger:
    """Decode a row, in the order of `find_trigger`."""
    kind, trigger_id, path, spec, version, owner, paused, created_at, created_by, changed_at, revision = row
    return StoredTrigger(
        kind, trigger_id, path, msgspec.json.decode(spec), version, owner, bool(paused),
        created_at, created_by, changed_at, revision,
    )  # fmt: skip


def position_row(name: str, position: Mapping[str, int], revision: int) -> tuple[Any, ...]:
    """Encode the position of a reader, in the order of `put_position`."""
    return name, msgspec.json.encode(position).decode(), revision + 1, revision


def position_of(rows: Sequence[Sequence[Any]]) -> tuple[dict[str, int], int]:
    """Decode the position of a reader and its revision; without a row, the start."""
    return (msgspec.json.decode(rows[0][0], type=dict[str, int]), int(rows[0][1])) if rows else ({}, 0)
