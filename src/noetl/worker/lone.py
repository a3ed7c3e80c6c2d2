"""Does the work of a step that is one plain task, of a kind that never waits, here and now and without a pipeline.

What does not go well, or gives more than a small result, goes on the usual way from there. Tested in
tests/unit/worker/test_plain.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from noetl.engine.lone import began, first_attempt, went_well
from noetl.engine.run_info import RunInfo, for_work
from noetl.model.messages import Ending, Record, Report
from noetl.model.outcome import Outcome
from noetl.worker.attempts import attempted_at_once
from noetl.worker.context import SMALL, Equipment
from noetl.worker.keychain import KeyRing
from noetl.worker.playbooks import PlannedStep
from noetl.worker.reporter import Reporter

Tried = tuple[int, Outcome]  # when the only attempt began, and what came of it
_NO_WRITES: Final[Mapping[str, Any]] = {}


class LoneWork:
    """Such work, as its attempt sees it."""

    __slots__ = ("_plan", "_reporter", "shared")

    def __init__(self, shared: Equipment, plan: PlannedStep, reporter: Reporter) -> None:
        self.shared = shared
        self._plan = plan
        self._reporter = reporter

    @property
    def info(self) -> RunInfo:
        return for_work(self._plan.info, self._reporter.lease.work)

    @property
    def keys(self) -> KeyRing:
        return self.shared.keys()

    @property
    def sources(self) -> dict[object, Callable[[], Iterable[Record]]]:
        return self._reporter.sources

    def done(self) -> Report | Tried:
        """Do the work, and give its only report, or how far it came."""
        reporter, now, task = self._reporter, self.shared.clock.now, self._plan.lone
        assert task is not None
        attempt, at = first_attempt(task, reporter.lease.work), now()
        outcome = attempted_at_once(self._plan.at_once[attempt.kind], attempt, None, self, reporter)
        if outcome.status != "ok" or not isinstance(outcome.result, SMALL):
            return at, outcome
        records = reporter.records
        records.insert(0, began(task, attempt, at))
        records.append(went_well(attempt, at, now()))
        return reporter.report_of(Ending("ok", outcome.result), _NO_WRITES)
