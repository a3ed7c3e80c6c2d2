"""`noetl graph`: draw a playbook as text, Mermaid, Graphviz, SVG or JSON.

An invalid playbook is drawn as far as possible, with a note on stderr. Exit code 0: drawn; 2: nothing to draw, or the arguments
are wrong. The drawing is in `noetl.dsl.draw`. Tested in tests/acceptance/language/test_graph_cli.py.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from noetl.cli.arguments.files import load_file
from noetl.cli.runtime.terminal import echo, echo_document
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.dsl.draw import Picture
    from noetl.dsl.reading.nodes import Source
    from noetl.dsl.reading.parse import Document


class Format(StrEnum):
    """Formats of a drawing."""

    text = "text"
    mermaid = "mermaid"
    dot = "dot"
    svg = "svg"
    json = "json"


def command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Playbook file; `-` reads stdin.")],
    format: Annotated[Format, typer.Option(help="Format of the drawing.")] = Format.text,
    output: Annotated[Path | None, typer.Option(help="Write to this file. [default: stdout]")] = None,
) -> None:
    """Draw the graph of a playbook."""
    from noetl.dsl.draw import picture
    from noetl.dsl.reading.parse import parse
    from noetl.dsl.tree.normalize import normalize

    try:
        text = load_file(file)
    except InvalidInput as error:
        _fail(str(error))
    name = "<stdin>" if file == "-" else file
    document = parse(text, name)
    drawn = picture(normalize(document))
    if not drawn.vertices:
        _fail(f"{name}: no steps to draw{_reason(document)}; see `noetl validate {file}`")
    _write(_drawing(drawn, document.source, format, terminal=output is None and sys.stdout.isatty()), output)
    _note_problems(document, file)


def _drawing(drawn: Picture, source: Source, format: Format, terminal: bool) -> str:
    from noetl.dsl import draw

    match format:
        case Format.mermaid:
            return draw.draw_mermaid(drawn)
        case Format.dot:
            return draw.draw_dot(drawn)
        case Format.svg:
            return draw.draw_svg(drawn)
        case Format.json:
            return draw.draw_json(drawn, source)
    # Only a terminal has a width; a file or a pipe gets conditions in full.
    return draw.draw_text(drawn, _terminal_width() if terminal else None)


def _terminal_width() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _write(text: str, output: Path | None) -> None:
    data = text.encode("utf-8", "replace")
    if output is None:
        echo_document(data)
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        _fail(f"Cannot write {output}: {error.strerror or error}.")


def _reason(document: Document) -> str:
    problem = next((problem for problem in document.problems if problem.kind != "legacy-boolean"), None)
    if problem is None:
        return ""
    place = document.source.position(problem.start)
    return f" (line {place.line}, column {place.column}: {problem.message.rstrip('.')})"


def _note_problems(document: Document, file: str) -> None:
    from noetl.dsl.checking.context import CheckContext
    from noetl.dsl.validate import examine
    from noetl.wiring.embedded import language_kinds

    errors = sum(found.severity == "error" for found in examine(CheckContext(document, language_kinds())))
    if errors:
        count = f"{errors} error{'' if errors == 1 else 's'}"
        echo(
            f"noetl: {document.source.file} has {count}; the drawing shows what could be parsed. "
            f"See `noetl validate {file}`.",
            err=True,
        )


def _fail(message: str) -> NoReturn:
    echo(f"noetl: {message}", err=True)
    raise typer.Exit(2)
