"""`noetl validate`: check playbooks and report every problem in one pass.

Exit code 0: no errors; 1: errors found; 2: a file cannot be read, or the arguments are wrong. The checks are in
`noetl.dsl.validate`. Tested in tests/acceptance/language/test_validate_cli.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.arguments.files import FileProblem, playbook_files, read_file
from noetl.cli.arguments.options import Tolerant
from noetl.cli.output.diagnostics import FORMATS, Format, Report
from noetl.cli.runtime.runner import SHORT_LIVED, tune_gc
from noetl.cli.runtime.terminal import echo


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Playbooks or folders; `-` reads stdin.")],
    format: Annotated[Format, typer.Option(help="Format of the report.")] = Format.text,
    json: Annotated[bool, typer.Option("--json", help="Print JSON; short for --format json.")] = False,
    tolerant: Tolerant = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings too.")] = False,
) -> None:
    """Check playbooks and report every problem."""
    from noetl.cli.playbooks.disk_catalog import DiskCatalog
    from noetl.dsl.validate import validate
    from noetl.wiring.availability import unavailable
    from noetl.wiring.embedded import kind_problems, language_kinds

    tune_gc(SHORT_LIVED)  # saves a third of the time on a long playbook for a few megabytes
    kinds = language_kinds()
    report = Report()
    problems: list[FileProblem] = []
    for name in playbook_files(files, problems):
        text = read_file(name, problems)
        if text is not None:
            catalog = DiskCatalog(Path.cwd(), Path(name).parent if name != "-" else Path.cwd())
            shown = "<stdin>" if name == "-" else name
            found = validate(text, shown, kinds, catalog=catalog, unavailable=unavailable, tolerant=tolerant)
            report.add(shown, text, found)
    problems.extend(FileProblem(text) for text in kind_problems())
    FORMATS[Format.json if json else format](report)
    for problem in problems:
        echo(f"noetl: {problem.message}", err=True)
    if any(problem.fatal for problem in problems):
        raise typer.Exit(2)
    if report.count("error") or (strict and report.count("warning")):
        raise typer.Exit(1)
