"""Completion offers everything that occurs in a good playbook."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from noetl.authoring.analysis.occurrences import occurrences
from noetl.authoring.analysis.reading import Reading
from noetl.authoring.completion.complete import complete
from noetl.authoring.language.grammar_at import Spot, options, spot_at
from noetl.dsl.grammar.types import Choice
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from tests.unit.authoring.editing import good

Mention = tuple[str, int]  # a word, and the offset at which it ends


def entries(node: Node | None) -> Iterator[Entry]:
    if isinstance(node, MapNode):
        for entry in node:
            yield entry
            yield from entries(entry.value)
    elif isinstance(node, ListNode):
        for item in node:
            yield from entries(item)


def labels(reading: Reading, offset: int) -> set[str]:
    return {item.label for item in complete(reading, offset).items}


def spots(reading: Reading, *, keys: bool) -> Iterator[tuple[Scalar, Spot]]:
    for entry in entries(reading.exact.document.root):
        part = entry.key if keys else entry.value
        spot = (
            spot_at(reading.exact.document.root, reading.exact.kinds, part.start) if isinstance(part, Scalar) else None
        )
        # What an alias brings stands elsewhere, at the place of its anchor.
        if spot is not None and isinstance(part, Scalar) and spot.node is part:
            yield part, spot


def fields(reading: Reading) -> Iterator[Mention]:
    seen: set[tuple[str, ...]] = set()
    for key, spot in spots(reading, keys=True):
        if spot.field is not None and not key.style and spot.path not in seen:
            seen.add(spot.path)
            yield spot.field.name, key.end


def words_of_choices(reading: Reading) -> Iterator[Mention]:
    for value, spot in spots(reading, keys=False):
        words = {word for option in options(spot.type) if isinstance(option, Choice) for word in option.words}
        if value.text in words and value.style in ("", '"', "'"):
            yield value.text, value.end - len(value.style)


def mentioned_things(reading: Reading) -> Iterator[Mention]:
    """Yield mentions of steps, tasks and credentials that the playbook defines."""
    known = {one.thing for one in occurrences(reading.subject) if one.defines}
    for one in occurrences(reading.subject):
        is_named = one.thing.kind in ("step", "task", "credential", "workbook")
        if is_named and not one.defines and one.spelled and one.thing in known:
            yield one.thing.name, one.end


def names_in_templates(reading: Reading) -> Iterator[Mention]:
    seen: set[tuple[str, str]] = set()
    for reference in reading.subject.references:
        if reference.means not in ((), ("misplaced",)) and (reference.site.role, reference.name) not in seen:
            seen.add((reference.site.role, reference.name))
            last = reference.read.offset + len(reference.name) - 1
            yield reference.name, reading.subject.locate(reference.site, last) + 1


@pytest.mark.parametrize(
    ("mentions", "least"), [(fields, 1000), (words_of_choices, 200), (mentioned_things, 300), (names_in_templates, 400)]
)
def test_what_stands_in_a_playbook_is_offered_there(
    mentions: Callable[[Reading], Iterator[Mention]], least: int
) -> None:
    found = [(name, reading, *mention) for name, reading in good() for mention in mentions(reading)]
    assert len(found) > least
    assert [
        f"{name}: {word} at {reading.exact.source.position(end)}"
        for name, reading, word, end in found
        if word not in labels(reading, end)
    ] == []


def test_a_document_that_cannot_be_parsed_gets_the_same_completions() -> None:
    different: list[str] = []
    seen: set[tuple[bool, str, str]] = set()
    for name, reading in good():
        broken = reading.with_text(f"{reading.text}\n'never closed")
        assert not broken.exact.document.whole
        for keys in (True, False):
            for part, spot in spots(reading, keys=keys):
                kind = (keys, spot.level_name, spot.field.name if spot.field else "")
                if kind not in seen:
                    seen.add(kind)
                    offset = part.end - (1 if part.style in ("'", '"') else 0)
                    if labels(reading, offset) != labels(broken, offset):
                        different.append(f"{name}: {'.'.join(spot.path)} at {part.start}")
    assert different == []
    assert len(seen) > 200
