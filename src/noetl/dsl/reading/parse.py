"""Parse YAML or JSON into nodes with positions; never raises, never hangs.

Problems are returned as data. Tested in tests/unit/dsl/reading/test_parse.py, test_parse_syntax.py and test_parse_hostile.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final, Protocol, cast

import yaml
from msgspec import Struct

from noetl.dsl.reading.compose import MAX_DEPTH, MAX_NODES, Composer, Event, UnreadableError
from noetl.dsl.reading.nodes import MapNode, Node, Scalar, Source
from noetl.dsl.reading.problems import ProblemKind, ReadProblem
from noetl.dsl.reading.source_map import locate
from noetl.dsl.reading.syntax_errors import explain

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "Document", "ProblemKind", "ReadProblem", "locate", "parse"]

MAX_BYTES: Final = 4 * 1024 * 1024

_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TAG_DIRECTIVE: Final = re.compile(
    r"(?:[ \t]*(?:#[^\r\n\x85\u2028\u2029]*)?[\r\n\x85\u2028\u2029]|%[^\r\n]*[\r\n])*?%TAG\b"
)
_AFTER_DOCUMENT: Final = re.compile(r"(?:\s+|#[^\r\n\x85\u2028\u2029]*|\.\.\.(?=\s|\Z))*")
_SEPARATORS: Final = "\x85\u2028\u2029"  # end a line in YAML 1.1, and are like any other character in JSON
_SEPARATOR: Final = re.compile(f"[{_SEPARATORS}]")
_JSON_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[ \t\r\n]+')
_SURROGATES: Final = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\.")


class Parser(Protocol):
    """The part of a YAML parser that is used: its next event."""

    def get_event(self) -> Any: ...


MakeParser = Callable[[str], Parser]


class Document(Struct, frozen=True):
    """A parsed document; `root` is partial, or None, after a syntax error."""

    source: Source
    root: Node | None
    problems: tuple[ReadProblem, ...]
    whole: bool = True  # False after a syntax error: the rest of the text is unknown


def parse(text: str | bytes, file: str = "<playbook>") -> Document:
    """Parse one document."""
    decoded, problem = _decode(text)
    source = Source(file, decoded)
    if problem is None:
        problem = _refuse(decoded)
    if problem is not None:
        return Document(source, None, (problem,), whole=False)
    return read(source, default_parser())


def default_parser() -> MakeParser:
    """Return the parser in C, or the one in Python where C is not available."""
    parser: MakeParser = getattr(yaml, "CLoader", yaml.Loader)
    return parser


def read(source: Source, make_parser: MakeParser) -> Document:
    """Parse a text that is printable and within the size limit, with the given parser."""
    document = _compose(source, _Events(make_parser(source.text)))
    if _SEPARATOR.search(source.text) or any(problem.kind in ("syntax", "tab") for problem in document.problems):
        as_json = _json_events(source.text, make_parser)
        if as_json is not None:
            return _compose(source, as_json)
    return document


class _Events:
    """The parser's events; a syntax error ends the stream."""

    __slots__ = ("_get", "error")

    def __init__(self, parser: Parser) -> None:
        self._get = parser.get_event
        self.error: yaml.YAMLError | None = None

    def next(self) -> Event:
        try:
            event: Event | None = self._get()
        except yaml.YAMLError as error:
            self.error = error
            self._get = lambda: None
            event = None
        if event is not None:
            return event
        return self._end()

    def _end(self) -> Event:
        mark = getattr(self.error, "problem_mark", None) or yaml.Mark("", 0, 0, 0, None, 0)
        end: Event = cast(Event, yaml.StreamEndEvent(mark, mark))
        return end

    def broken(self) -> bool:
        return self.error is not None


def _is_of(event: object, *kinds: type[yaml.Event]) -> bool:
    return isinstance(event, kinds)


def _compose(source: Source, events: _Events) -> Document:
    composer = Composer(source, events.next)
    root: Node | None = None
    try:
        event = events.next()
        while _is_of(event, yaml.StreamStartEvent, yaml.DocumentStartEvent):
            event = events.next()
        if not _is_of(event, yaml.StreamEndEvent):
            root = composer.node(event, 0)
            _check_root(composer, root)
            _check_end(composer, events)
    except UnreadableError:
        root = None
    problems = composer.problems
    if events.error is not None:
        broken = explain(source.text, events.error)
        # Problems shortly before the error are usually part of the same mistake.
        problems = [item for item in problems if item.start < broken.start and item.kind != "not-a-map"]
        problems.append(broken)
    elif not problems and (root is None or _is_nothing(root)):
        root = None
        problems.append(ReadProblem("empty", 0, 0, "The file contains no playbook: it is empty or has only comments."))
    whole = events.error is None and root is not None
    return Document(source, root, tuple(sorted(problems, key=lambda problem: problem.start)), whole)


def _is_nothing(node: Node) -> bool:
    return isinstance(node, Scalar) and not node.text and not node.style


def _check_root(composer: Composer, root: Node) -> None:
    if isinstance(root, MapNode) or _is_nothing(root):
        return
    shape = "a single value" if isinstance(root, Scalar) else "a list"
    message = f"A playbook is a map with keys such as 'metadata' and 'workflow'; this file contains {shape}."
    composer.problem("not-a-map", root.start, root.end, message)


def _check_end(composer: Composer, events: _Events) -> None:
    """Report text after the document; use the parser only where that is cheap."""
    event = events.next()
    if events.broken():
        return
    rest = _AFTER_DOCUMENT.match(composer.text, event.end_mark.index)
    start = rest.end() if rest else event.end_mark.index
    if start == len(composer.text):
        return
    if not composer.text.startswith(("---", "%"), start):
        events.next()
    if not events.broken():
        line = composer.source.position(start).line
        message = f"A file contains one playbook, but a second document starts on line {line}."
        composer.problem("many-documents", start, start + 3, message)


def _decode(text: str | bytes) -> tuple[str, ReadProblem | None]:
    if isinstance(text, str):
        # A character takes one to four bytes, so only texts between the limits must be measured.
        too_large = len(text) > MAX_BYTES or (
            len(text) * 4 > MAX_BYTES and len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES
        )
        return ("", _too_large()) if too_large else (text.removeprefix("\ufeff"), None)
    if len(text) > MAX_BYTES:
        return "", _too_large()
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "", ReadProblem("not-text", 0, 0, "This file is encoded in UTF-16; a playbook must be UTF-8.")
    try:
        return text.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        body = text.removeprefix(b"\xef\xbb\xbf")
        start = len(body[: error.start].decode("utf-8", "replace"))
        message = f"The byte 0x{body[error.start]:02x} is not valid UTF-8; a playbook must be UTF-8."
        return body.decode("utf-8", "replace"), ReadProblem("not-text", start, start + 1, message)


def _too_large() -> ReadProblem:
    return ReadProblem("too-large", 0, 0, f"The file is larger than {MAX_BYTES // 1024 // 1024} MiB.")


def _refuse(text: str) -> ReadProblem | None:
    match = _UNPRINTABLE.search(text)
    if match:
        message = f"The character U+{ord(match[0]):04X} is not allowed in a playbook."
        return ReadProblem("not-text", match.start(), match.end(), message)
    # The parser compares each tag directive with all previous ones, so a file full of them would take hours.
    directive = _TAG_DIRECTIVE.match(text) if "%TAG" in text else None
    if directive:
        return ReadProblem("tag", directive.end() - 4, directive.end(), "A playbook cannot use a %TAG directive.")
    return None


class _RewrittenEvents(_Events):
    """Events of a text with other characters in its strings; values get theirs back."""

    __slots__ = ("_originals",)

    def __init__(self, parser: Parser, originals: Mapping[int, str | None]) -> None:
        super().__init__(parser)
        self._originals = originals

    def next(self) -> Event:
        event = super().next()
        if _is_of(event, yaml.ScalarEvent):
            event.value = event.value.translate(self._originals)
        return event


def _json_events(text: str, make_parser: MakeParser) -> _Events | None:
    """Return the events of JSON, rewritten for the YAML parser in place.

    White space outside strings becomes spaces. A pair of surrogate escapes becomes one long escape, padded to the same
    length with a character that the text does not use. Other such characters stand for what ends a line in YAML alone.
    """
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return None
    folded = text.lower()
    unused = (c for c in map(chr, range(0xE000, 0xF900)) if c not in text and f"\\u{ord(c):x}" not in folded)
    spare = list(islice(unused, 1 + len(_SEPARATORS)))
    if len(spare) <= len(_SEPARATORS):
        return None
    padding, *marks = spare
    marked = {ord(separator): mark for separator, mark in zip(_SEPARATORS, marks, strict=True)}

    def long_escape(pair: re.Match[str]) -> str:
        if pair[1] is None:
            return pair[0]
        high, low = int(pair[1], 16), int(pair[2], 16)
        return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}{padding * 2}"

    def token(match: re.Match[str]) -> str:
        if not match[0].startswith('"'):
            return " " * len(match[0])
        return _SURROGATES.sub(long_escape, match[0]).translate(marked)

    originals = {ord(padding): None, **{ord(mark): chr(separator) for separator, mark in marked.items()}}
    return _RewrittenEvents(make_parser(_JSON_TOKEN.sub(token, text)), originals)
