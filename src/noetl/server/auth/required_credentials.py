"""Refuse a start whose credentials are surely missing.

A credential exists if it is stored, if the environment of this server has it, or if a worker has reported it: a worker resolves
a name in its own environment first. Where a worker of the pool is not ready, or has not reported, the task itself finds out.
Tested in tests/server/auth/test_required_credentials.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from noetl.dsl.analysis.needed_credentials import Need, missing_rows
from noetl.model.errors import MissingCredentials
from noetl.ports import Clock, Credentials, Runtime, WorkerInfo
from noetl.server.workers.presence import is_ready
from noetl.settings import credential_suffix, credential_suffixes

_FIX: Final = "Store each with `noetl credential put NAME`, and start again."


class Tables(Credentials, Runtime, Protocol):
    """Credentials and workers of a store."""


class RequiredCredentials:
    """Looks for the credentials of a playbook: one query if all are stored."""

    def __init__(self, tables: Tables, clock: Clock, environment: Callable[[], Mapping[str, str]]) -> None:
        self._tables = tables
        self._clock = clock
        self._environment = environment

    async def require(self, needs: Sequence[Need]) -> None:
        """Raise MissingCredentials with all credentials that are surely missing."""
        known = await self._tables.known_credentials([need.name for need in needs])
        missing = [need for need in needs if need.name not in known]
        if missing:
            own, now = credential_suffixes(self._environment()), self._clock.now()
            workers = await self._tables.workers()
            missing = [need for need in missing if credential_suffix(need.name) not in own]
            missing = [need for need in missing if _is_missing(need, workers, now)]
        if missing:
            raise MissingCredentials("Credentials are missing; nothing was started.", missing_rows(missing), _FIX)


def _is_missing(need: Need, workers: Sequence[WorkerInfo], now: int) -> bool:
    """Return whether the workers that can take the work have reported, and lack it."""
    suffix = credential_suffix(need.name)
    if any(suffix in (worker.credentials or ()) for worker in workers):
        return False
    ready = [worker for worker in workers if is_ready(worker, now)]
    for pool in need.pools:
        takers = [worker for worker in ready if pool is not None and pool in worker.pool.split(",")]
        if takers and all(worker.credentials is not None for worker in takers):
            return True
    return False
