"""Print diagnostics. Tested in tests/acceptance/language/test_validate_cli.py."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from noetl import __version__
from noetl.cli.output.snippet import snippet
from noetl.cli.runtime.terminal import echo, style
from noetl.dsl.diagnostic import SEVERITIES, Diagnostic, Severity
from noetl.dsl.reading.nodes import Source
from noetl.dsl.rules import BY_CODE

_COLOURS: dict[Severity, str] = {"error": "red", "warning": "yellow", "hint": "cyan"}
_SARIF_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "hint": "note"}
_GITHUB_LEVELS: dict[Severity, str] = {"error": "error", "warning": "warning", "hint": "notice"}


class Format(StrEnum):
    """Formats of a report."""

    text = "text"
    json = "json"
    sarif = "sarif"
    github = "github"


class Report:
    """Diagnostics of all files of one command."""

    def __init__(self) -> None:
        self.diagnostics: list[Diagnostic] = []
        self.sources: dict[str, Source] = {}

    def add(self, file: str, text: bytes, found: tuple[Diagnostic, ...]) -> None:
        self.sources[file] = Source(file, text.decode("utf-8-sig", "replace").replace("\r\n", "\n"))
        self.diagnostics.extend(found)

    def count(self, severity: Severity) -> int:
        return sum(found.severity == severity for found in self.diagnostics)


def print_text(report: Report, err: bool = False) -> None:
    """Print each diagnostic with source line, reason and fix; then a summary."""
    for found in report.diagnostics:
        label = style(f"{found.severity}[{found.code}]", fg=_COLOURS[found.severity], bold=True)
        echo(f"{found.file}:{found.line}:{found.column}: ", label, f" {found.message}", err=err)
        for line in snippet(report.sources[found.file], found.start, found.end):
            echo(f"  {line}", err=err)
        echo(f"  why: {BY_CODE[found.code].why}", err=err)
        echo(f"  fix: {found.fix}\n", err=err)
    echo(_summary(report), err=err)


def _summary(report: Report) -> str:
    files = f"{len(report.sources)} file{'s' if len(report.sources) != 1 else ''}"
    counts = [(report.count(severity), severity) for severity in SEVERITIES]
    listed = ", ".join(f"{count} {severity}{'s' if count != 1 else ''}" for count, severity in counts if count)
    if not report.sources:
        return "No files checked."
    if not listed:
        return f"{files} checked, no problems found."
    return f"{listed} in {files}. `noetl explain CODE` explains a code."


def print_json(report: Report) -> None:
    """Print one JSON object; its keys are a stable interface."""
    echo(json.dumps({"diagnostics": [_as_json(found) for found in report.diagnostics]}, indent=2))


def _as_json(found: Diagnostic) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": found.severity,
        "file": found.file,
        "line": found.line,
        "column": found.column,
        "end_line": found.end.line,
        "end_column": found.end.column,
        "path": found.path,
        "message": found.message,
        "why": BY_CODE[found.code].why,
        "fix": found.fix,
    }


def print_sarif(report: Report) -> None:
    """Print a SARIF 2.1.0 log for code scanning."""
    used = sorted({found.code for found in report.diagnostics})
    rules = [
        {
            "id": code,
            "name": BY_CODE[code].name,
            "shortDescription": {"text": BY_CODE[code].summary},
            "fullDescription": {"text": BY_CODE[code].why},
            "help": {"text": BY_CODE[code].fix},
            "defaultConfiguration": {"level": _SARIF_LEVELS[BY_CODE[code].severity]},
        }
        for code in used
    ]
    results = [_as_sarif(found, used.index(found.code)) for found in report.diagnostics]
    driver = {"name": "noetl", "version": __version__, "rules": rules}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    echo(json.dumps(log, indent=2))


def _as_sarif(found: Diagnostic, rule_index: int) -> dict[str, Any]:
    region = {
        "startLine": found.line,
        "startColumn": found.column,
        "endLine": found.end.line,
        "endColumn": max(found.end.column, found.column + 1),
    }
    place = {"physicalLocation": {"artifactLocation": {"uri": found.file.replace("\\", "/")}, "region": region}}
    return {
        "ruleId": found.code,
        "ruleIndex": rule_index,
        "level": _SARIF_LEVELS[found.severity],
        "message": {"text": f"{found.message} {found.fix}"},
        "locations": [place],
    }


def print_github(report: Report) -> None:
    """Print GitHub workflow commands that annotate lines of a pull request."""
    for found in report.diagnostics:
        place = (
            f"file={_escape(found.file, ':,')},line={found.line},col={found.column},"
            f"endLine={found.end.line},endColumn={found.end.column},title={found.code}"
        )
        echo(f"::{_GITHUB_LEVELS[found.severity]} {place}::{_escape(f'{found.message} {found.fix}')}")


def _escape(text: str, more: str = "") -> str:
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


FORMATS: dict[Format, Callable[[Report], None]] = {
    Format.text: print_text,
    Format.json: print_json,
    Format.sarif: print_sarif,
    Format.github: print_github,
}
