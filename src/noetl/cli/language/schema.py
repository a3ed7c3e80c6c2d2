"""`noetl schema`: print the JSON Schema of playbooks or of test files.

Exit code 2: the file cannot be written. Tested in tests/acceptance/language/test_schema_cli.py.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from noetl.cli.runtime.terminal import echo, echo_document


class What(StrEnum):
    """Files that have a schema."""

    playbook = "playbook"
    tests = "tests"


def command(
    what: Annotated[What, typer.Argument(help="Schema of playbooks or of test files.")] = What.playbook,
    output: Annotated[Path | None, typer.Option(help="Write to this file. [default: stdout]")] = None,
) -> None:
    """Print the JSON Schema of playbooks or of test files."""
    import json

    from noetl.dsl.json_schema import level_schema, schema
    from noetl.wiring.embedded import kind_problems, language_kinds

    if what is What.tests:
        from noetl.testing.cases.files.levels import FILE

        found = level_schema(FILE, "noetl:tests", "NoETL tests")
    else:
        found = schema(language_kinds())
    text = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    for problem in kind_problems():
        echo(f"noetl: {problem}", err=True)
    if output is None:
        echo_document(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        echo(f"noetl: Cannot write {output}: {error.strerror or error}.", err=True)
        raise typer.Exit(2) from None
