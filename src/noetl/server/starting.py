"""Makes the ids of executions: by time and chance, or from the key of a request that may be sent twice.

A key leads to the same id for a minute at any server, so two requests that race start one execution; afterwards the tag of
the key finds it. Tested in tests/server/test_api_executions.py.
"""

from __future__ import annotations

import os
from hashlib import sha256
from random import SystemRandom

from noetl.model.ids import ExecutionId, snowflake

KEY_MS = 24 * 3600 * 1000  # for so long a key is remembered
_WINDOW_MS = 60_000


def new_execution(now: int) -> ExecutionId:
    """Make the id of an execution; two processes of one machine that start in the same millisecond get two."""
    return snowflake(now, os.getpid(), SystemRandom().getrandbits(12))


def keyed_execution(actor: str, key: str, now: int) -> ExecutionId:
    """Make the id that a key leads to now; it looks up to two minutes older than it is."""
    number = int.from_bytes(_hash(actor, key)[:8], "big")
    at = (now // _WINDOW_MS - 1) * _WINDOW_MS + number % _WINDOW_MS
    return snowflake(at, number >> 16, number >> 32)


def key_tag(actor: str, key: str) -> str:
    """Give the tag under which an execution is found by its key."""
    return "key:" + _hash(actor, key).hex()[:24]


def _hash(actor: str, key: str) -> bytes:
    return sha256(f"{actor}\0{key}".encode()).digest()
