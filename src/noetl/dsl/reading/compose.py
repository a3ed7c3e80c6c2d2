"""Build nodes from YAML events within limits, without expanding aliases.

Anchors, aliases, merge keys and tags are resolved here; the output is maps, lists and scalars. A broken text yields the part
before the error. Tested in tests/unit/dsl/reading/test_parse.py and test_parse_hostile.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, NoReturn, Protocol

import yaml

from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar, Source
from noetl.dsl.reading.problems import ProblemKind, ReadProblem
from noetl.dsl.reading.scalars import (
    CORE_TAGS,
    LEGACY_BOOLEANS,
    MAX_NUMBER_LENGTH,
    Value,
    is_oversize_number,
    resolve,
    resolve_tagged,
)
from noetl.dsl.reading.syntax_errors import shortened, unquoted_template

MAX_DEPTH: Final = 100
MAX_NODES: Final = 500_000
MAX_REPEATED: Final = 50_000  # values that aliases repeat
MAX_REPEATED_TEXT: Final = 4_000_000  # characters of them
MAX_PROBLEMS: Final = 1_000  # a generated file could have half a million
BLOCK_STYLES: Final = frozenset("|>")


class Mark(Protocol):
    """A position in the text; `index` counts characters."""

    index: int


class Event(Protocol):
    """An event of the YAML parser; `start_mark` includes anchor and tag."""

    start_mark: Mark
    end_mark: Mark
    anchor: str | None
    tag: str | None
    value: str
    style: str | None
    flow_style: bool | None


NextEvent = Callable[[], Event]

_PROPERTIES: Final = re.compile(r"(?:!<[^>\s]*>|[&!][^\s,\[\]{}]*|\s+|#[^\r\n\x85\u2028\u2029]*)*")
_YAML_TAGS: Final = "tag:yaml.org,2002:"
_TEMPLATE: Final = re.compile(r"\{\{[^\r\n]*?\}\}")
_TO_LINE_END: Final = re.compile("[^\r\n\x85\u2028\u2029]*")


class UnreadableError(Exception):
    """The text cannot be read further; the problem is recorded."""


def after_properties(text: str, start: int, end: int) -> int:
    """Return the offset after the anchor, tag and comments before a node."""
    match = _PROPERTIES.match(text, start, end)
    return match.end() if match else start


class _Anchored(NamedTuple):
    node: Node
    weight: int
    height: int
    text: int = 0  # characters of its values


class Composer:
    """Composer of one document from events; `problems` collects read problems."""

    def __init__(self, source: Source, next_event: NextEvent) -> None:
        self.source = source
        self.text = source.text
        self.problems: list[ReadProblem] = []
        self.next_event = next_event
        self.end = 0  # end of the last node's text; an alias ends elsewhere than its node
        self._count = 0
        self._text = 0
        self._repeated = 0
        self._repeated_text = 0
        self._deepest = 0
        self._anchors: dict[str, _Anchored] = {}
        self._open: set[str] = set()

    def problem(self, kind: ProblemKind, start: int, end: int, message: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(ReadProblem(kind, start, end, message))

    def _stop(self, kind: ProblemKind, start: int, end: int, message: str) -> NoReturn:
        self.problems.append(ReadProblem(kind, start, end, message))
        raise UnreadableError

    def node(self, event: Event, depth: int) -> Node:
        """Read the node that begins with `event`."""
        kind: type[object] = type(event)
        if kind is yaml.ScalarEvent:
            node: Node = self._scalar(event, is_value=True)
        elif kind is yaml.AliasEvent:
            return self._alias(event, depth)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            return self._collection(event, depth + 1)
        else:  # the stream ended before the value
            self.end = event.start_mark.index
            node = Scalar(self.end, self.end, None, "")
        self._count += 1
        if self._count > MAX_NODES:
            self._too_many(node.start)
        return node

    def _too_many(self, at: int) -> NoReturn:
        self._stop("too-large", at, at + 1, f"The document has more than {MAX_NODES:,} values.")

    def _scalar(self, event: Event, *, is_value: bool) -> Scalar:
        text, style = event.value, event.style or ""
        start, self.end = event.start_mark.index, event.end_mark.index
        tag, anchor = event.tag, event.anchor
        if tag is not None or anchor is not None:
            start = after_properties(self.text, start, self.end)
        if style in BLOCK_STYLES:
            self.end = start + len(self.text[start : self.end].rstrip())
        value: Value = text
        if tag is not None:
            value = self._tagged(tag, event.start_mark.index, text, style)
        elif not style:
            value = resolve(text)
            if is_value and len(text) <= 3 and text in LEGACY_BOOLEANS:
                self._legacy_boolean(start, text)
            if len(text) > MAX_NUMBER_LENGTH and is_oversize_number(text):
                message = f"This number has {len(text):,} characters; the limit is {MAX_NUMBER_LENGTH}."
                self.problem("too-large", start, self.end, message)
        scalar = Scalar(start, self.end, value, text, style)
        self._text += len(text)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(scalar, 1, 0, len(text))
        return scalar

    def _legacy_boolean(self, start: int, text: str) -> None:
        message = f"'{text}' is a string here; only true and false are booleans."
        self.problem("legacy-boolean", start, start + len(text), message)

    def _tagged(self, tag: str, start: int, text: str, style: str) -> Value:
        if tag == "!":
            return text
        name = CORE_TAGS.get(tag)
        if name is not None and name not in ("map", "seq"):
            try:
                return resolve_tagged(name, text)
            except ValueError:
                self._bad_tag(start, f"The value '{shortened(text)}' does not have the type of the tag !!{name}.")
        else:
            self._foreign_tag(tag, start)
        return text if style else resolve(text)

    def _foreign_tag(self, tag: str, start: int) -> None:
        shown = "!!" + tag.removeprefix(_YAML_TAGS) if tag.startswith(_YAML_TAGS) else tag
        self._bad_tag(start, f"A playbook cannot use the tag {shortened(shown)} here.")

    def _bad_tag(self, start: int, message: str) -> None:
        anchor = re.compile(r"&\S*\s+").match(self.text, start)
        place = anchor.end() if anchor else start
        length = re.compile(r"[^\s,\[\]{}]*").match(self.text, place)
        self.problem("tag", place, length.end() if length else place + 1, message)

    def _alias(self, event: Event, depth: int) -> Node:
        name, start, self.end = event.anchor or "", event.start_mark.index, event.end_mark.index
        if name in self._open:
            self._stop("recursive-alias", start, self.end, f"The alias *{name} is inside the value that it repeats.")
        target = self._anchors.get(name)
        if target is None:
            self.problem("unknown-anchor", start, self.end, f"There is no anchor &{name} before this alias.")
            target = _Anchored(Scalar(start, self.end, None, ""), 1, 0)
        if depth + target.height > MAX_DEPTH:
            message = f"With the alias *{name} expanded, values nest more than {MAX_DEPTH} levels deep."
            self._stop("too-deep", start, self.end, message)
        self._deepest = max(self._deepest, depth + target.height)
        self._repeat(target, start)
        return target.node

    def _repeat(self, target: _Anchored, start: int) -> None:
        self._count += target.weight
        self._text += target.text
        self._repeated += target.weight
        self._repeated_text += target.text
        if self._repeated > MAX_REPEATED or self._repeated_text > MAX_REPEATED_TEXT:
            most = f"{MAX_REPEATED:,} values or {MAX_REPEATED_TEXT:,} characters"
            self._stop("alias-bomb", start, self.end, f"The aliases of the document repeat more than {most}.")
        if self._count > MAX_NODES:
            self._too_many(start)

    def _collection(self, event: Event, depth: int) -> Node:
        start = event.start_mark.index
        if depth > MAX_DEPTH:
            self._stop("too-deep", start, start + 1, f"Values nest more than {MAX_DEPTH} levels deep.")
        kind: type[object] = type(event)
        is_map = kind is yaml.MappingStartEvent
        anchor, tag = event.anchor, event.tag
        if tag is not None and tag != "!" and CORE_TAGS.get(tag) != ("map" if is_map else "seq"):
            self._foreign_tag(tag, start)
        if anchor is not None or tag is not None:
            start = after_properties(self.text, start, len(self.text))
        before, before_text, outer_deepest = self._count, self._text, self._deepest
        self._deepest = depth
        self._count += 1
        if self._count > MAX_NODES:
            self._too_many(start)
        if anchor is not None:
            self._open.add(anchor)
        flow = bool(event.flow_style)
        node: Node = self._map(start, depth, flow) if is_map else self._list(start, depth, flow)
        if anchor is not None:
            self._open.discard(anchor)
            height = self._deepest - depth + 1
            self._anchors[anchor] = _Anchored(node, self._count - before, height, self._text - before_text)
        self._deepest = max(self._deepest, outer_deepest)
        return node

    def _list(self, start: int, depth: int, flow: bool) -> ListNode:
        items = []
        next_event = self.next_event
        self.end = start
        while True:
            event = next_event()
            kind: type[object] = type(event)
            if kind is yaml.SequenceEndEvent or kind is yaml.StreamEndEvent:
                break
            items.append(self.node(event, depth))
        if flow:
            self.end = event.end_mark.index
        return ListNode(start, self.end, tuple(items), flow)

    def _map(self, start: int, depth: int, flow: bool) -> Node:
        index: dict[str, Entry] = {}
        merges: list[Node] = []
        next_event, problems = self.next_event, len(self.problems)
        self.end = start
        while True:
            event = next_event()
            kind: type[object] = type(event)
            if kind is yaml.ScalarEvent:
                key = self._scalar(event, is_value=False)
                text = key.text
                if text == "<<" and not key.style:
                    merges.append(self._merged(key, depth, again=bool(merges)))
                    continue
                value = self.node(next_event(), depth)
                if key.value is None:
                    self.problem("bad-key", key.start, max(key.end, key.start + 1), "A key is missing or null here.")
                elif text in index:
                    self._duplicate(key, index[text].key)
                else:
                    index[text] = Entry(key, value)
            elif kind is yaml.MappingEndEvent or kind is yaml.StreamEndEvent:
                break
            else:
                self._odd_key(event, depth, index)
        if flow:
            self.end = event.end_mark.index
        if flow and self.text.startswith("{{", start):
            return self._template(start, problems)
        for merged in merges:
            self._fold(merged, index)
        return MapNode(start, self.end, tuple(index.values()), flow, index)

    def _duplicate(self, key: Scalar, first: Scalar) -> None:
        line = self.source.position(first.start).line
        message = f"The key '{shortened(key.text)}' occurs twice in this map; the first is on line {line}."
        self.problem("duplicate-key", key.start, key.end, message)

    def _odd_key(self, event: Event, depth: int, index: dict[str, Entry]) -> None:
        """Read an entry with an unusual key; only an alias of a scalar is valid."""
        start = event.start_mark.index
        problems = len(self.problems)
        key = self.node(event, depth)
        end = self.end
        is_alias = self.text.startswith("*", start)
        is_known = not is_alias or len(self.problems) == problems
        value = self.node(self.next_event(), depth)
        if isinstance(key, Scalar) and key.value is not None:
            if is_alias:
                key = Scalar(start, end, key.value, key.text)
            if key.text in index:
                self._duplicate(key, index[key.text].key)
            else:
                index[key.text] = Entry(key, value)
        elif is_known and not self.text.startswith("{{", start - 1):
            message = "A key must be text; this one is a list, a map or null."
            self.problem("bad-key", start, end, message)

    def _template(self, start: int, problems: int) -> Node:
        """Treat unquoted `{{ x }}`, which YAML parses as a map in a map, as a template."""
        del self.problems[problems:]
        match = _TEMPLATE.match(self.text, start) or _TO_LINE_END.match(self.text, start, self.end)
        template = match[0].rstrip() if match else ""
        self.end = max(self.end, start + len(template))
        self.problem("syntax", start, start + len(template), unquoted_template(template))
        return Scalar(start, start + len(template), template, template)

    def _merged(self, key: Scalar, depth: int, *, again: bool) -> Node:
        value = self.node(self.next_event(), depth)
        if again:
            message = "The merge key '<<' occurs twice in this map; write it once: '<<: [*first, *second]'."
            self.problem("duplicate-key", key.start, key.end, message)
            return MapNode(key.start, key.end, ())
        maps = value.items if isinstance(value, ListNode) else (value,)
        if not all(isinstance(each, MapNode) for each in maps):
            self.problem("bad-key", key.start, key.end, "The merge key '<<' takes a map, or a list of maps.")
        return value

    def _fold(self, merged: Node, index: dict[str, Entry]) -> None:
        for each in merged.items if isinstance(merged, ListNode) else (merged,):
            if isinstance(each, MapNode):
                for entry in each.entries:
                    index.setdefault(entry.key.text, entry)
