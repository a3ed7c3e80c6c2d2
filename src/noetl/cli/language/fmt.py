"""`noetl fmt`: lays playbooks out evenly, in place; comments stay.

Exit code 0: done; 1: with --check, a file would change; 2: a file cannot be read, written or formatted, or the call is
wrong. The layout is `noetl.dsl.layout`. Tested in tests/acceptance/test_fmt_cli.py.
"""

from __future__ import annotations

import os
import tempfile
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.common.files import FileTrouble, playbook_files, read_playbook


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Playbooks, folders of them, or - for stdin.")],
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print what would change.")] = False,
) -> None:
    """Format playbooks in place; comments stay. With - the text goes from stdin to stdout."""
    troubles: list[FileTrouble] = []
    changed, seen = 0, 0
    for name in playbook_files(files, troubles):
        data = read_playbook(name, troubles)
        formatted = _formatted(name, data, troubles) if data is not None else None
        if data is None or formatted is None:
            continue
        seen += 1
        is_new = formatted != data
        changed += is_new
        if diff:
            _print_diff(name, data, formatted)
        elif check:
            if is_new:
                typer.echo(f"{_shown(name)}: would be formatted")
        elif name == "-":
            typer.echo(formatted, nl=False)
        elif is_new:
            _write(Path(name), formatted, troubles)
    for trouble in troubles:
        typer.echo(f"noetl: {trouble.message}", err=True)
    if not diff and "-" not in files:
        typer.echo(_summary(seen, changed, check=check), err=True)
    if troubles:
        raise typer.Exit(2)
    if check and changed:
        raise typer.Exit(1)


def _shown(name: str) -> str:
    return "<stdin>" if name == "-" else name


def _summary(seen: int, changed: int, *, check: bool) -> str:
    word = "would be formatted" if check else "formatted"
    return f"{changed} of {seen} file{'s' if seen != 1 else ''} {word}."


def _formatted(name: str, data: bytes, troubles: list[FileTrouble]) -> bytes | None:
    """Give the new content; a text that cannot be read as a playbook is a trouble, each problem with its place."""
    from noetl.dsl.layout.format import format_text, has_faults
    from noetl.dsl.parse import parse

    document = parse(data, _shown(name))
    if not has_faults(document):
        return format_text(data.decode("utf-8"), _shown(name)).encode("utf-8")
    for problem in document.problems:
        if problem.kind != "legacy-boolean":
            line, column = document.source.position(problem.start)
            troubles.append(FileTrouble(f"{_shown(name)}:{line}:{column}: {problem.message}", fatal=True))
    troubles.append(FileTrouble(f"{_shown(name)}: left as it was; put this right first", fatal=True))
    return None


def _print_diff(name: str, data: bytes, formatted: bytes) -> None:
    old, new = (text.decode("utf-8").splitlines(keepends=True) for text in (data, formatted))
    for line in unified_diff(old, new, _shown(name), f"{_shown(name)} (formatted)"):
        typer.echo(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n", nl=False)


def _write(path: Path, content: bytes, troubles: list[FileTrouble]) -> None:
    """Replace a file in one step, so that nobody ever sees half of it; permissions and links stay."""
    target = path.resolve()
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(target.stat().st_mode & 0o7777)
        Path(temporary).replace(target)
    except OSError as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        troubles.append(FileTrouble(f"{path}: cannot be written: {error.strerror or error}", fatal=True))
