"""Rows of triggers in SQL. Tested in tests/conformance/test_triggers.py."""

from __future__ import annotations

from collections.abc import Sequence
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
