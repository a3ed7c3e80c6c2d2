"""Play and compare all cases. Tested in tests/unit/testing/test_cases.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.diagnostic import span
from noetl.dsl.reading.nodes import Position
from noetl.testing.cases.checks.coverage import Coverage
from noetl.testing.cases.checks.expect import differences
from noetl.testing.cases.checks.match import Difference
from noetl.testing.cases.files.read import Case, Given, TestFile
from noetl.testing.cases.player.player import Stage, play

Status = Literal["passed", "failed", "skipped"]


class Failure(Struct, frozen=True):
    """One difference, with its position in the file."""

    file: str
    start: Position
    end: Position
    path: str
    expected: str
    found: str
    note: str = ""


class CaseResult(Struct, frozen=True):
    """Result of a case."""

    name: str
    line: int
    status: Status
    took_ms: float = 0.0  # of real time
    failures: Sequence[Failure] = ()
    why: str = ""  # why it was skipped


Recording = Callable[[Given], tuple[Given, Mapping[str, Any]]]


def run_cases(
    tests: TestFile,
    stage: Stage,
    recording: Recording,
    chosen: Callable[[str], bool] = lambda _: True,
    covered: Coverage | None = None,
) -> list[CaseResult]:
    """Play the selected cases, in order."""
    return [_run(tests, stage, recording, case, covered) for case in tests.cases if chosen(case.name)]


def _run(tests: TestFile, stage: Stage, recording: Recording, case: Case, covered: Coverage | None) -> CaseResult:
    line = tests.source.position(case.at.start).line
    if case.skip is not None:
        return CaseResult(case.name, line, "skipped", why=case.skip)
    began = perf_counter()
    given, recorded = recording(case.given)
    case = replace(case, given=given)
    seen = play(stage, given, recorded)
    found = [failure(tests, one) for one in differences(case, seen)]
    if covered is not None:
        path = stage.main.tree.path
        covered.add(path, seen)
        if covered.is_quiet(path):  # items of loops tell all of their rules only where every task is recorded
            loud = replace(given, settings={**given.settings, "durability": "task"})
            covered.add(path, play(stage, loud, recorded))
    took = (perf_counter() - began) * 1000
    return CaseResult(case.name, line, "failed" if found else "passed", took, found)


def failure(tests: TestFile, found: Difference) -> Failure:
    """Convert a difference to a failure with its position."""
    start, end = span(tests.source, found.node.start, found.node.end)
    return Failure(tests.source.file, start, end, found.path, found.expected, found.found, found.note)
