"""Completion offers everything that occurs in a good playbook."""

from __future__ import annotations

from collections.abc import Iterator

from noetl.dsl.grammar.types import Choice
from noetl.dsl.reading.nodes import Entry, ListNode, MapNode, Node, Scalar
from noetl.lsp.analysis.occurrences import occurrences
from noetl.lsp.analysis.reading import Reading
from noetl.lsp.completion.complete import complete
from noetl.lsp.language.grammar_at import Spot, options, spot_at
from tests.unit.lsp.editing import good


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


def test_every_field_is_offered_where_it_stands() -> None:
    missing: list[str] = []
    count = 0
    for name, reading in good():
        seen: set[tuple[str, ...]] = set()
        for key, spot in spots(reading, keys=True):
            if spot.field is not None and not key.style and spot.path not in seen:
                seen.add(spot.path)
                count += 1
                if spot.field.name not in labels(reading, key.end):
                    missing.append(f"{name}: {'.'.join(spot.path)} at {key.start}")
    assert missing == []
    assert count > 1000


def test_every_word_of_a_choice_is_offered_where_it_stands() -> None:
    missing: list[str] = []
    count = 0
    for name, reading in good():
        for value, spot in spots(reading, keys=False):
            words = {word for option in options(spot.type) if isinstance(option, Choice) for word in option.words}
            if value.text in words and value.style in ("", '"', "'"):
                count += 1
                if value.text not in labels(reading, value.end - len(value.style)):
                    missing.append(f"{name}: {'.'.join(spot.path)} at {value.start}")
    assert missing == []
    assert count > 200


def test_every_mention_of_a_step_a_task_or_a_credential_is_offered_where_it_stands() -> None:
    missing: list[str] = []
    count = 0
    for name, reading in good():
        known = {one.thing for one in occurrences(reading.subject) if one.defines}
        for one in occurrences(reading.subject):
            if (
                one.thing.kind in ("step", "task", "credential", "workbook")
                and not one.defines
                and one.spelled
                and one.thing in known
            ):
                count += 1
                if one.thing.name not in labels(reading, one.end):
                    missing.append(f"{name}: {one.thing} at {reading.exact.source.position(one.start)}")
    assert missing == []
    assert count > 300


def test_every_name_that_a_template_reads_is_offered_where_it_stands() -> None:
    missing: list[str] = []
    count = 0
    for name, reading in good():
        seen: set[tuple[str, str]] = set()
        for reference in reading.subject.references:
            if reference.means not in ((), ("misplaced",)) and (reference.site.role, reference.name) not in seen:
                seen.add((reference.site.role, reference.name))
                count += 1
                end = reading.subject.locate(reference.site, reference.read.offset + len(reference.name) - 1) + 1
                if reference.name not in labels(reading, end):
                    missing.append(f"{name}: {reference.name} at {reading.exact.source.position(end)}")
    assert missing == []
    assert count > 400


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
