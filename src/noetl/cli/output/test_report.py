"""Report of `noetl test`. Tested in tests/acceptance/language/test_test_cli.py."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from noetl.cli.output.snippet import snippet
from noetl.cli.runtime.terminal import echo, style
from noetl.dsl.reading.nodes import Source
from noetl.model.errors import InvalidInput
from noetl.testing.cases.checks.coverage import Coverage
from noetl.testing.cases.files.problems import FileProblem
from noetl.testing.cases.runner import CaseResult, Failure
from noetl.testing.cases.saga_matrix import SagaResult

_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "skipped": ("-", "yellow")}
_MAX_FAILURES = 10  # of one saga


@dataclass
class FileResult:
    """Results of one test file."""

    source: Source
    playbook: str
    troubles: list[FileProblem] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    sagas: list[SagaResult] = field(default_factory=list)


@dataclass
class Outcome:
    """Results of one test run."""

    coverage: Coverage | None = None
    least: float | None = None  # percent of coverage required
    details: bool = False  # print the rows of sagas
    files: list[FileResult] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)  # of no test file

    def count(self, status: str | None = None) -> int:
        """Count the cases and sagas with a status, or all."""
        cases = sum(status in (None, case.status) for file in self.files for case in file.cases)
        sagas = [("passed" if saga.is_good else "failed") for file in self.files for saga in file.sagas]
        return cases + sum(status in (None, one) for one in sagas)

    @property
    def is_covered(self) -> bool:
        return self.least is None or self.coverage is None or self.coverage.percent >= self.least

    @property
    def exit_code(self) -> int:
        if self.troubles or any(file.troubles for file in self.files):
            return 2
        return 1 if self.count("failed") or not self.is_covered else 0


def print_text(outcome: Outcome) -> None:
    """Print each file with its cases and failures, then a summary."""
    for file in outcome.files:
        echo(style(file.source.file, bold=True))
        for trouble in file.troubles:
            _print_trouble(file.source, trouble)
        for case in file.cases:
            mark, colour = _MARKS[case.status]
            why = f" ({case.why})" if case.why else ""
            echo("  ", style(mark, fg=colour), f" {case.name}{why}")
            for found in case.failures:
                _print_failure(file.source, found)
        for saga in file.sagas:
            _print_saga(file.source, saga, outcome.details)
    if outcome.coverage is not None and outcome.coverage.playbooks:
        _print_coverage(outcome.coverage)
    for message in outcome.troubles:
        echo(f"noetl: {message}", err=True)
    if not outcome.is_covered and outcome.coverage is not None:
        echo(f"noetl: {outcome.coverage.percent:.1f} % covered, less than {outcome.least:g} %.", err=True)
    echo(_summary(outcome))


def _print_trouble(source: Source, trouble: FileProblem) -> None:
    label = style("error", fg="red", bold=True)
    echo(f"{trouble.file}:{trouble.start.line}:{trouble.start.column}: ", label, f" {trouble.message}")
    for line in snippet(source, trouble.start, trouble.end):
        echo(f"  {line}")
    if trouble.fix:
        echo(f"  fix: {trouble.fix}")


def _print_failure(source: Source, found: Failure) -> None:
    place = f"{found.file}:{found.start.line}:{found.start.column}"
    echo(f"    {place}: ", style(found.path, bold=True))
    for line in snippet(source, found.start, found.end):
        echo(f"      {line}")
    echo("      expected: ", style(found.expected, fg="green"))
    echo("      found:    ", style(found.found, fg="red"))
    if found.note:
        echo(f"      {found.note}")


def _print_saga(source: Source, saga: SagaResult, details: bool) -> None:
    mark, colour = _MARKS["passed" if saga.is_good else "failed"]
    broken = sum(row.broken for row in saga.rows)
    echo("  ", style(mark, fg=colour), f" saga: {saga.plays} plays, {broken} with something broken")
    width = max((len(row.what) for row in saga.rows), default=0)
    for row in saga.rows if details else ():
        verdict = f"{row.broken} broken" if row.broken else "ok"
        echo(f"      {row.what:<{width}}  {row.plays:>3} plays  {verdict:<9}  {row.ended}")
    for found in saga.failures[:_MAX_FAILURES]:
        _print_failure(source, found)
    if len(saga.failures) > _MAX_FAILURES:
        echo(f"    … and {len(saga.failures) - _MAX_FAILURES} more; --json prints all")


def _print_coverage(coverage: Coverage) -> None:
    echo(style("coverage of arcs and rules", bold=True))
    for covered in coverage.playbooks.values():
        echo(f"  {covered.file}: {covered.hit} of {covered.total}")
        for line, what in covered.missed():
            echo(f"    {covered.file}:{line}: no case takes {what}")


def _summary(outcome: Outcome) -> str:
    total = outcome.count()
    counts = [f"{number} {status}" for status in ("passed", "failed", "skipped") if (number := outcome.count(status))]
    wrong = sum(bool(file.troubles) for file in outcome.files)
    if wrong:
        counts.append(f"{wrong} file{'s' if wrong > 1 else ''} with errors")
    covered = f", {outcome.coverage.percent:.1f} % covered" if outcome.coverage is not None else ""
    return f"{total} test{'s' if total != 1 else ''}: {', '.join(counts) or 'nothing ran'}{covered}"


def print_json(outcome: Outcome) -> None:
    """Print one JSON object; its keys are a stable interface."""
    from noetl.cli.output.format import to_json

    echo(to_json(_data(outcome)))


def _data(outcome: Outcome) -> dict[str, Any]:
    coverage = outcome.coverage
    data: dict[str, Any] = {
        "files": [_file(one) for one in outcome.files],
        "troubles": outcome.troubles,
        "passed": outcome.count("passed"),
        "failed": outcome.count("failed"),
        "skipped": outcome.count("skipped"),
    }
    if coverage is not None:
        data["coverage"] = {
            "percent": round(coverage.percent, 2),
            "playbooks": [
                {
                    "file": one.file,
                    "hit": one.hit,
                    "total": one.total,
                    "missed": [{"line": line, "what": what} for line, what in one.missed()],
                }
                for one in coverage.playbooks.values()
            ],
        }
    return data


def _file(file: FileResult) -> dict[str, Any]:
    return {
        "file": file.source.file,
        "playbook": file.playbook,
        "troubles": [
            {"line": one.start.line, "column": one.start.column, "message": one.message, "fix": one.fix}
            for one in file.troubles
        ],
        "cases": [
            {
                "name": case.name,
                "line": case.line,
                "status": case.status,
                "took_ms": round(case.took_ms, 1),
                "failures": [_failure(found) for found in case.failures],
            }
            for case in file.cases
        ],
        "sagas": [
            {
                "line": saga.line,
                "plays": saga.plays,
                "rows": [
                    {"what": row.what, "plays": row.plays, "broken": row.broken, "ended": row.ended}
                    for row in saga.rows
                ],
                "failures": [_failure(found) for found in saga.failures],
            }
            for saga in file.sagas
        ],
    }


def _failure(found: Failure) -> dict[str, Any]:
    return {
        "line": found.start.line,
        "column": found.start.column,
        "path": found.path,
        "expected": found.expected,
        "found": found.found,
        "note": found.note,
    }


def write_junit(outcome: Outcome, place: Path) -> None:
    """Write the results as JUnit XML. Raises InvalidInput."""
    from xml.etree.ElementTree import Element, ElementTree, SubElement

    root = Element("testsuites", name="noetl test")
    for file in outcome.files:
        suite = SubElement(root, "testsuite", name=file.source.file)
        for name, line, took_ms, status, texts in _junit_cases(file):
            case = SubElement(suite, "testcase", name=_clean(name), classname=file.source.file)
            case.set("file", file.source.file)
            case.set("line", str(line))
            case.set("time", f"{took_ms / 1000:.3f}")
            if status != "passed":
                tag = {"failed": "failure", "skipped": "skipped"}.get(status, "error")
                SubElement(case, tag, message=_clean(texts[0] if texts else "")).text = _clean("\n".join(texts))
        for tag, name in {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}.items():
            suite.set(tag, str(sum(1 for _ in suite.iter(name))))
    try:
        ElementTree(root).write(place, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise InvalidInput(f"Cannot write {place}: {error.strerror or error}.") from None


def _junit_cases(file: FileResult) -> Iterator[tuple[str, int, float, str, list[str]]]:
    for trouble in file.troubles:
        yield "the file", trouble.start.line, 0.0, "error", [str(trouble)]
    for case in file.cases:
        texts = [_line(found) for found in case.failures] if case.status == "failed" else [case.why]
        yield case.name, case.line, case.took_ms, case.status, texts
    for saga in file.sagas:
        yield "saga", saga.line, 0.0, "passed" if saga.is_good else "failed", [_line(found) for found in saga.failures]


def _line(found: Failure) -> str:
    place = f"{found.file}:{found.start.line}:{found.start.column}"
    note = f" ({found.note})" if found.note else ""
    return f"{place}: {found.path}: expected {found.expected}, found {found.found}{note}"


def _clean(text: str) -> str:
    return "".join(char for char in text if char in "\t\n\r" or ord(char) >= 32)
