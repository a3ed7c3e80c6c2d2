"""`noetl validate`: checks playbooks and reports everything that is wrong with them, in one pass.

Exit code 0: no errors; 1: errors were found; 2: a file could not be read or the call is wrong. The checks are
`noetl.dsl.validate`, the looks of the report `noetl.cli.output.diagnostics`. Tested in tests/acceptance/test_validate_cli.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.common.files import FileTrouble, playbook_files, read_playbook
from noetl.cli.common.garbage import CHECKING, settle
from noetl.cli.output.diagnostics import FORMATS, Format, Report


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Playbooks, folders of them, or - for stdin.")],
    format: Annotated[Format, typer.Option(help="How to print what was found.")] = Format.text,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs; the same as --format json.")] = False,
    tolerant: Annotated[bool, typer.Option("--tolerant", help="Unknown keys are warnings, not errors.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail the check too.")] = False,
) -> None:
    """Check playbooks and report everything that is wrong with them."""
    from noetl.cli.playbooks.disk_catalog import DiskCatalog
    from noetl.dsl.validate import validate
    from noetl.wiring import kind_problems, language_kinds

    settle(CHECKING)  # saves a third of the time on a long playbook, and costs a few megabytes
    kinds = language_kinds()
    report = Report()
    troubles: list[FileTrouble] = []
    for name in playbook_files(files, troubles):
        text = read_playbook(name, troubles)
        if text is not None:
            catalog = DiskCatalog(Path.cwd(), Path(name).parent if name != "-" else Path.cwd())
            shown = "<stdin>" if name == "-" else name
            report.add(shown, text, validate(text, shown, kinds, catalog=catalog, tolerant=tolerant))
    troubles.extend(FileTrouble(problem) for problem in kind_problems())
    FORMATS[Format.json if json else format](report)
    for trouble in troubles:
        typer.echo(f"noetl: {trouble.message}", err=True)
    if any(trouble.fatal for trouble in troubles):
        raise typer.Exit(2)
    if report.count("error") or (strict and report.count("warning")):
        raise typer.Exit(1)
