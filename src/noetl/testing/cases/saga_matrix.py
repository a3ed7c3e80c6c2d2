"""Saga test: every call fails in turn, then every compensation that follows.

After each play the engine's guarantees and the file's invariants must hold. A call fails permanently or once; a
compensation fails permanently, once, or after it took effect, with its response lost. Tested in
tests/unit/testing/test_sagas.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from noetl.dsl.reading.nodes import Node
from noetl.testing.cases.checks.coverage import Coverage
from noetl.testing.cases.checks.expect import names_of
from noetl.testing.cases.checks.match import Difference, shown
from noetl.testing.cases.checks.saga_guarantees import broken_promises, undoing
from noetl.testing.cases.files.read import Given, Saga, TestFile
from noetl.testing.cases.files.templates import TemplateTroubleError, holds
from noetl.testing.cases.player.mocks import Fault, Site
from noetl.testing.cases.player.player import PlayResult, Stage, play
from noetl.testing.cases.runner import Failure, failure

_LOST: Final = {"kind": "connection", "message": "the response was lost", "retryable": True, "sent": True}
_PASSING: Final = {"kind": "connection", "message": "it failed once", "retryable": True}
_WAYS: Final[Mapping[str, Fault]] = {
    "fails once": Fault(_PASSING, once=True),
    "takes effect, and its response is lost": Fault(_LOST, once=True, lost=True),
}


class Row(Struct):
    """Results of the plays in which one call fails permanently."""

    what: str
    ended: str = ""
    plays: int = 0
    broken: int = 0


class SagaResult(Struct):
    """Result of a saga test."""

    line: int
    rows: list[Row] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    plays: int = 0

    @property
    def is_good(self) -> bool:
        return not self.failures


def run_saga(
    tests: TestFile,
    stage: Stage,
    given: Given,
    recorded: Mapping[str, Any],
    coverage: Coverage | None = None,
    *,
    crash: bool = False,
) -> SagaResult:
    """Run the saga test; with `crash` the process also dies before every commit."""
    assert tests.saga is not None
    trial = _Trial(tests, tests.saga, stage, given, recorded, coverage, crash)
    return trial.run()


class _Trial:
    def __init__(
        self,
        tests: TestFile,
        saga: Saga,
        stage: Stage,
        given: Given,
        recorded: Mapping[str, Any],
        coverage: Coverage | None,
        crash: bool,
    ) -> None:
        self._crash = crash
        self._tests = tests
        self._saga = saga
        self._stage = stage
        self._given = given
        self._recorded = recorded
        self._coverage = coverage
        self._trees = {one.tree.path: one.tree for one in stage.playbooks}
        self._undoing = {
            (path, step.compensate) for path, tree in self._trees.items() for step in tree.workflow if step.compensate
        }
        self._result = SagaResult(tests.source.position(saga.at.start).line)

    def run(self) -> SagaResult:
        first = Row("nothing fails")
        seen = self._play(first, {})
        if seen.status != "completed":
            said = f"it ended {seen.status}: {shown(seen.state.error)}"
            self._failed(Difference(self._saga.at, first.what, "completed", said))
            return self._result
        for site in _sites(seen):
            if self._is_tried(site):
                self._try(site)
        return self._result

    def _is_tried(self, site: Site) -> bool:
        saga = self._saga
        named = not saga.only or site.step in saga.only
        return named and site.step not in saga.never and (site.playbook, site.step) not in self._undoing

    def _try(self, site: Site) -> None:
        what = self._name(site)
        row = Row(f"{what} fails")
        for_good = Fault(self._saga.error)
        seen = self._play(row, {site: for_good}, row.what)
        row.ended = _told(seen)
        for commit in range(seen.commits) if self._crash else ():
            self._play(row, {site: for_good}, f"{what} fails, and the process dies before commit {commit + 1}", commit)
        for way, fault in _WAYS.items():
            if not fault.lost:  # a call that took effect but failed did not complete
                self._play(row, {site: fault}, f"{what} {way}")
        for undo in _sites(seen):
            if (undo.playbook, undo.step) in self._undoing:
                for way, fault in {"fails": for_good, **_WAYS}.items():
                    faults = {site: for_good, undo: fault}
                    self._play(row, faults, f"{what} fails, then {self._name(undo)} {way}")

    def _name(self, site: Site) -> str:
        if site.playbook == self._stage.main.tree.path:
            return str(site)
        return f"{self._trees[site.playbook].name}:{site}" if site.playbook in self._trees else str(site)

    def _play(self, row: Row, faults: Mapping[Site, Fault], what: str = "", dies_at: int | None = None) -> PlayResult:
        if row not in self._result.rows:
            self._result.rows.append(row)
        seen = play(self._stage, self._given, self._recorded, faults, dies_at)
        row.ended = row.ended or _told(seen)
        row.plays += 1
        self._result.plays += 1
        if self._coverage is not None:
            self._coverage.add(self._stage.main.tree.path, seen)
        broken = list(self._broken(seen))
        row.broken += bool(broken)
        for node, name, found in broken:
            self._failed(Difference(node, what or row.what, name, found, f"route: {' '.join(names_of(seen)['route'])}"))
        return seen

    def _broken(self, seen: PlayResult) -> Iterator[tuple[Node, str, str]]:
        here = self._saga.at
        yield from ((here, "every call has a mock", problem) for problem in seen.problems)
        if seen.law is not None:
            yield here, "the log folds to the state", seen.law
        if seen.refused is not None:
            yield here, "the execution starts", seen.refused
            return
        for path, events in [(self._stage.main.tree.path, seen.events), *seen.children]:
            for said in broken_promises(self._trees[path], events) if path in self._trees else ():
                yield here, "compensation newest first, once each", said
        names = _names(seen)
        for invariant in self._saga.invariants:
            try:
                if (invariant.when is None or holds(invariant.when, names)) and not holds(invariant.check, names):
                    told = {name: names[name] for name in ("world", "status", "compensated", "undone", "stuck")}
                    yield invariant.at, invariant.name, shown(told)
            except TemplateTroubleError as problem:
                yield invariant.at, invariant.name, str(problem)

    def _failed(self, found: Difference) -> None:
        self._result.failures.append(failure(self._tests, found))


def _sites(seen: PlayResult) -> Sequence[Site]:
    return list(dict.fromkeys(call.site for call in seen.calls))


def _names(seen: PlayResult) -> dict[str, Any]:
    logs = [undoing(events) for events in (seen.events, *(events for _, events in seen.children))]

    def steps(runs: Sequence[str]) -> list[str]:
        return [run.partition("#")[0] for run in runs]

    return {
        **names_of(seen),
        "completed": [step for log in logs for step in steps(log.completed)],
        "undone": [step for log in logs for step in steps(log.undone)],
        "stuck": [step for log in logs for step in steps(log.given_up)],
        "failed": sorted({step for one in seen.state.failures for step in [str(one["step"])]}),
    }


def _told(seen: PlayResult) -> str:
    if seen.status != "failed":
        return seen.status
    undone = [run.partition("#")[0] for run in undoing(seen.events).undone]
    return f"failed, undone: {' '.join(undone)}" if undone else "failed, nothing undone"
