"""Problems of a test file. Tested in tests/unit/testing/test_case_files.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from noetl.dsl.checking.shape import ShapeFinding, compared, fits
from noetl.dsl.diagnostic import nearest, span
from noetl.dsl.grammar.types import Choice, Level, ListOf, Type
from noetl.dsl.grammar.wording import shown, stands, takes
from noetl.dsl.reading.nodes import Node, Position, Scalar, Source
from noetl.testing.cases.files.levels import TITLES


class FileProblem(Struct, frozen=True):
    """One problem with its position."""

    file: str
    start: Position
    end: Position
    message: str
    fix: str = ""

    def __str__(self) -> str:
        said = f"{self.file}:{self.start.line}:{self.start.column}: {self.message}"
        return f"{said} {self.fix}".rstrip()


def at(source: Source, node: Node, message: str, fix: str = "") -> FileProblem:
    """Make a problem at a node."""
    return FileProblem(source.file, *span(source, node.start, node.end), message, fix)


def unknown(source: Source, node: Node, what: str, name: str, known: Iterable[str]) -> FileProblem:
    """Make a problem for an unknown name, with the nearest known one."""
    names = list(dict.fromkeys(known))
    meant = nearest(name, names)
    message = f"Unknown {what} `{name}`."
    if meant is not None:
        return at(source, node, f"{message} Did you mean `{meant}`?", f"Write `{meant}`.")
    return at(source, node, message, f"Known: {', '.join(names[:12])}." if names else "")


def shape_troubles(source: Source, root: Node | None, level: Level) -> Iterator[FileProblem]:
    """Check a document against its level."""
    for finding in compared(root, level):
        yield at(source, finding.node, *_told(finding))


def _told(found: ShapeFinding) -> tuple[str, str]:
    title = TITLES.get(found.level.name, f"`{found.level.name}`")
    match found.kind:
        case "unknown-key":
            fix = f"Write `{found.meant}`." if found.meant else f"Use one of: {', '.join(found.level.names())}."
            hint = f" Did you mean '{found.meant}'?" if found.meant else ""
            return f"'{found.name}' is not a key of {title}.{hint}", fix
        case "missing":
            about = found.field.summary if found.field else ""
            return f"{title[:1].upper()}{title[1:]} needs '{found.name}'.", about
        case "bad-value":
            return _bad_value(found)
        case "empty-list":
            return f"'{found.name}' is empty.", f"Write {found.field.summary if found.field else 'an item'}"
        case "not-templated":
            return f"'{found.name}' must not be a template.", "Write a plain value."
        case _:
            wanted = _wanted(found)
            owner = f"'{found.name}'" if found.name else title[:1].upper() + title[1:]
            return f"{owner} takes {takes(wanted)}; here stands {stands(found.node)}.", f"Write {takes(wanted)}."


def _bad_value(found: ShapeFinding) -> tuple[str, str]:
    wanted = takes(found.expected or Type())
    text = shown(found.node) if isinstance(found.node, Scalar) else "this"
    meant = nearest(text, found.expected.words) if isinstance(found.expected, Choice) else None
    hint = f" Did you mean '{meant}'?" if meant else ""
    return f"'{found.name}' takes {wanted}, not '{text}'.{hint}", f"Write `{meant}`." if meant else f"Write {wanted}."


def _wanted(found: ShapeFinding) -> Type:
    field = found.field
    if field is None or fits(found.node, field.type):
        return found.expected or Type()
    is_item = isinstance(field.type, ListOf) and found.expected == field.type.item
    return found.expected or Type() if is_item else field.type
