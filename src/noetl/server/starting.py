"""Makes the ids of executions, and the names under which a request that may be sent twice is known.

Tested in tests/server/test_api_executions.py.
"""

from __future__ import annotations

import os
from hashlib import sha256
from random import SystemRandom

from noetl.model.ids import ExecutionId, snowflake

KEY_MS = 24 * 3600 * 1000  # for so long a key is remembered


def new_execution(now: int) -> ExecutionId:
    """Make the id of an execution; two processes of one machine that start in the same millisecond get two."""
    return snowflake(now, os.getpid(), SystemRandom().getrandbits(12))


def key_name(actor: str, key: str) -> str:
    """Give the name of a key: nobody meets the key of another, and a key may hold anything."""
    return sha256(f"{actor}\0{key}".encode()).hexdigest()[:32]
