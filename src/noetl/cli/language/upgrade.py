"""`noetl upgrade`: rewrite playbooks of older dialects in today's form.

Exit code 0: done; 1: with --check, a file would change; 2: a file cannot be read, written or upgraded, or the arguments are
wrong. The rewriting and its proof are in `noetl.dsl.upgrade`. Tested in tests/acceptance/language/test_upgrade_cli.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.files import FileProblem, playbook_files, read_file
from noetl.cli.playbooks.rewrite import print_diff, replace_file
from noetl.cli.runtime.terminal import echo, echo_document

if TYPE_CHECKING:
    from noetl.dsl.upgrade import Upgrade


def command(
    files: Annotated[list[str], typer.Argument(metavar="FILE…", help="Playbooks or folders; `-` reads stdin.")],
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit with 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Change nothing; print a diff.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Rewrite the files in place.")] = False,
) -> None:
    """Explain what of a playbook is in an older dialect, and rewrite it.

    A file is rewritten only with --write, and only if the new text has the same canonical tree and all comments. `-` prints the
    new text of stdin.
    """
    problems: list[FileProblem] = []
    changed, seen = 0, 0
    for name in playbook_files(files, problems):
        data = read_file(name, problems)
        made = None if data is None else _upgraded(name, data, problems)
        if data is None or made is None:
            continue
        seen += 1
        changed += made.is_done
        if diff:
            print_diff(_shown(name), data, made.text.encode("utf-8"), "upgraded")
        elif name == "-":
            echo_document(made.text)
        elif made.is_done:
            _explain(name, made)
            if write and not check:
                replace_file(Path(name), made.text.encode("utf-8"), problems)
    for problem in problems:
        echo(f"noetl: {problem.message}", err=True)
    if not diff and "-" not in files:
        echo(_summary(seen, changed, written=write and not check), err=True)
    if problems:
        raise typer.Exit(2)
    if check and changed:
        raise typer.Exit(1)


def _shown(name: str) -> str:
    return "<stdin>" if name == "-" else name


def _summary(seen: int, changed: int, *, written: bool) -> str:
    files = f"{changed} of {seen} file{'s' if seen != 1 else ''}"
    if written or not changed:
        return f"{files} upgraded."
    return (
        f"{files} would be upgraded. Add `--write` to rewrite {'it' if changed == 1 else 'them'}, `--diff` to see how."
    )


def _upgraded(name: str, data: bytes, problems: list[FileProblem]) -> Upgrade | None:
    from noetl.dsl.upgrade import upgrade

    try:
        made = upgrade(data.decode("utf-8-sig"), _shown(name))
    except UnicodeDecodeError:
        problems.append(FileProblem(f"{_shown(name)}: not upgraded. It is not encoded in UTF-8.", fatal=True))
        return None
    for refusal in made.refusals:
        line, column = made.source.position(refusal.at.start)
        problems.append(FileProblem(f"{_shown(name)}:{line}:{column}: {refusal.reason} {refusal.fix}", fatal=True))
    if made.problem:
        problems.append(FileProblem(f"{_shown(name)}: not upgraded. {made.problem}", fatal=True))
        return None
    return made


def _explain(name: str, made: Upgrade) -> None:
    """Print the rules that changed a file, each once with all of its lines."""
    places: dict[str, list[int]] = {}
    sentences: dict[str, str] = {}
    for change in made.changes:
        places.setdefault(change.lowering.name, []).append(made.source.position(change.at.start).line)
        sentences[change.lowering.name] = change.lowering.sentence
    echo(f"{name}:")
    for rule, found in places.items():
        lines = list(dict.fromkeys(sorted(found)))
        shown = ", ".join(map(str, lines[:8])) + (" …" if len(lines) > 8 else "")
        echo(f"  {rule} ({'line' if len(lines) == 1 else 'lines'} {shown}): {sentences[rule]}")
