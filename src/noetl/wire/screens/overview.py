"""Overview for a start page. Tested in tests/server/api/test_overview.py."""

from __future__ import annotations

from typing import Literal

from noetl.wire.answers import Answer, ExecutionRow, PoolRow
from noetl.wire.letters import LetterGroup


class Counted(Answer, frozen=True):
    """Executions by status; `is_whole`: false if only the newest ones were counted."""

    counts: dict[str, int]
    is_whole: bool


class Bucket(Answer, frozen=True):
    """Executions that started within a time, by status."""

    at: int
    counts: dict[str, int]


class NeedsYou(Answer, frozen=True):
    """Something that a person should look at."""

    cause: Literal["signal", "letters", "worker", "slow"]
    since: int
    execution: ExecutionRow | None = None  # of signal and slow
    usual_ms: int | None = None  # of slow: the 95th percentile of its playbook
    group: LetterGroup | None = None
    pool: PoolRow | None = None


class Overview(Answer, frozen=True):
    """Counts, what needs a person, throughput, pools and the newest executions."""

    now: Counted  # executions that have not ended; each status is counted up to 10,000
    day: Counted  # executions that started within 24 hours
    bucket_ms: int
    buckets: list[Bucket]  # of 24 hours, oldest first
    needs: list[NeedsYou]
    pools: list[PoolRow]
    recent: list[ExecutionRow]
