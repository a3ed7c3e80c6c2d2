"""`noetl fmt`: format playbooks in place, keeping comments.

Exit code 0: done; 1: with --check, a file would change; 2: a file cannot be read, written or formatted, or the arguments are
wrong. The layout is in `noetl.dsl.formatter`. Tested in tests/acceptance/language/test_fmt_cli.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.arguments.files import FileProblem, playbook_files, read_file
from noetl.cli.playbooks.rewrite import print_diff, replace_file
from noetl.cli.runtime.terminal import echo, echo_document


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Playbooks or folders; `-` reads stdin.")],
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit with 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print a diff.")] = False,
) -> None:
    """Format playbooks in place, keeping comments; `-` formats stdin to stdout."""
    problems: list[FileProblem] = []
    changed, seen = 0, 0
    for name in playbook_files(files, problems):
        data = read_file(name, problems)
        formatted = _format(name, data, problems) if data is not None else None
        if data is None or formatted is None:
            continue
        seen += 1
        is_new = formatted != data
        changed += is_new
        if diff:
            print_diff(_display_name(name), data, formatted, "formatted")
        elif check:
            if is_new:
                echo(f"{_display_name(name)}: would be formatted")
        elif name == "-":
            echo_document(formatted)
        elif is_new:
            replace_file(Path(name), formatted, problems)
    for problem in problems:
        echo(f"noetl: {problem.message}", err=True)
    if not diff and "-" not in files:
        echo(_summary(seen, changed, check=check), err=True)
    if problems:
        raise typer.Exit(2)
    if check and changed:
        raise typer.Exit(1)


def _display_name(name: str) -> str:
    return "<stdin>" if name == "-" else name


def _summary(seen: int, changed: int, *, check: bool) -> str:
    word = "would be formatted" if check else "formatted"
    return f"{changed} of {seen} file{'s' if seen != 1 else ''} {word}."


def _format(name: str, data: bytes, problems: list[FileProblem]) -> bytes | None:
    from noetl.dsl.formatter.format import format_text, has_faults
    from noetl.dsl.reading.parse import parse

    document = parse(data, _display_name(name))
    if not has_faults(document):
        return format_text(data.decode("utf-8"), _display_name(name)).encode("utf-8")
    for problem in document.problems:
        if problem.kind != "legacy-boolean":
            line, column = document.source.position(problem.start)
            problems.append(FileProblem(f"{_display_name(name)}:{line}:{column}: {problem.message}", fatal=True))
    problems.append(FileProblem(f"{_display_name(name)}: not formatted; fix these errors first", fatal=True))
    return None
