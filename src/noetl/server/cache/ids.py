"""Ids of executions, and names of idempotency keys.

Tested in tests/server/api/test_executions.py and tests/unit/server/cache/test_ids.py.
"""

from __future__ import annotations

from hashlib import sha256
from itertools import count
from random import SystemRandom

from noetl.model.events import Event
from noetl.model.ids import ExecutionId, event_id, snowflake

KEY_MS = 24 * 3600 * 1000  # how long a key is remembered
_machine = SystemRandom().getrandbits(10)  # not the process number: in containers all have the same
_counter = count(SystemRandom().getrandbits(12))


def new_execution(now: int) -> ExecutionId:
    """Create an execution id: unique in this process, and most likely in others."""
    return snowflake(now, _machine, next(_counter))


def is_started_by(first: Event, message_id: str) -> bool:
    """Return whether the first event of an execution comes from this start."""
    return first.event_id == event_id(message_id, 0)


def key_name(actor: str, key: str) -> str:
    """Return the stored name of an idempotency key; two actors' never collide."""
    return sha256(f"{actor}\0{key}".encode()).hexdigest()[:32]
