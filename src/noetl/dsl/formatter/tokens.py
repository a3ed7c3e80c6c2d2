"""Tokens with offsets. Tested in tests/unit/dsl/formatter/test_format.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import yaml

from noetl.dsl.reading.compose import after_properties
from noetl.dsl.reading.parse import default_parser

TokenKind = Literal["scalar", "alias", "map", "list", "end", "document", "document-end", "other"]

_KINDS: Final[dict[type, TokenKind]] = {
    yaml.ScalarEvent: "scalar",
    yaml.AliasEvent: "alias",
    yaml.MappingStartEvent: "map",
    yaml.SequenceStartEvent: "list",
    yaml.MappingEndEvent: "end",
    yaml.SequenceEndEvent: "end",
    yaml.DocumentStartEvent: "document",
    yaml.DocumentEndEvent: "document-end",
}


class Token(NamedTuple):
    """A value, or the start or end of a collection or document."""

    kind: TokenKind
    start: int  # of its properties
    content: int  # where the value itself begins
    end: int
    properties: str = ""
    style: str = ""  # of a scalar
    value: str = ""  # of a scalar
    flow: bool = False  # of a collection
    explicit: bool = False  # of a document's start or end


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of the first document of a text without syntax errors."""
    get_event = default_parser()(text).get_event
    kind: TokenKind = "other"
    while kind != "document-end":
        event = get_event()
        kind = _KINDS.get(type(event), "other")
        if kind != "other":
            yield _token(text, kind, event)


def _token(text: str, kind: TokenKind, event: Any) -> Token:
    start, end = event.start_mark.index, event.end_mark.index
    content, properties = start, ""
    if getattr(event, "tag", None) is not None or (kind != "alias" and getattr(event, "anchor", None) is not None):
        limit = end if kind == "scalar" else len(text)
        content = after_properties(text, start, limit)
        properties = _properties(text[start:content])
    return Token(
        kind,
        start,
        content,
        end,
        properties,
        getattr(event, "style", None) or "",
        getattr(event, "value", None) or "",
        bool(getattr(event, "flow_style", False)),
        bool(getattr(event, "explicit", False)),
    )


def _properties(text: str) -> str:
    words = []
    for line in text.splitlines():
        for word in line.split():
            if word.startswith("#"):
                break
            words.append(word)
    return " ".join(words[:2])
