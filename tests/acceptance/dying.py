"""Command line that kills itself at one point of a cursor's claim.

    python dying.py POINT ARGUMENT…

Points: before the rows are recorded, after that and before the claim's commit, after the commit and before its end is
reported, and after a row's work was done and before that is reported. The second row dies, so the first has passed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from noetl.cli import main
from noetl.model.messages import Ending, Row
from noetl.model.work import Lease
from noetl.worker.steps.reporter import Reporter

POINTS = ("before_record", "before_commit", "after_commit", "after_work")
_record, _end, _flush = Reporter.record, Reporter.end, Reporter.flush
_POINT = sys.argv[1] if len(sys.argv) > 1 else ""
_seen: list[str] = []


def die_at(point: str, second: bool) -> None:
    if point == _POINT and second:
        os.kill(os.getpid(), signal.SIGKILL)


async def record(self: Reporter, rows: tuple[Row, ...]) -> bool:
    _seen.extend(str(row.key) for row in rows)
    die_at("before_record", len(_seen) == 2)
    answer = await _record(self, rows)
    die_at("before_commit", len(_seen) == 2)
    return answer


async def end(self: Reporter, ending: Ending, writes: Mapping[str, Any], want: int = 0) -> list[Lease]:
    die_at("after_commit", len(_seen) == 2 and _is_claim(self))
    return await _end(self, ending, writes, want)


async def flush(self: Reporter, want: int = 0) -> list[Lease]:
    die_at("after_work", len(_seen) >= 2 and not _is_claim(self) and self.finishing)
    return await _flush(self, want)


def _is_claim(reporter: Reporter) -> bool:
    return reporter.lease.work.chunk is not None and reporter.lease.work.chunk.claim


if __name__ == "__main__":
    Reporter.record, Reporter.end, Reporter.flush = record, end, flush  # type: ignore[method-assign]
    del sys.argv[1]
    main()
