"""Where a character of a value stands in the source, for every style of scalar."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given

from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar
from noetl.dsl.reading.parse import Document, parse
from noetl.dsl.reading.source_map import locate, offsets
from tests.unit.dsl.reading.yaml_texts import yaml_noise, yaml_texts


def scalars(node: Node | None) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, MapNode):
        for entry in node.entries:
            yield entry.key
            yield from scalars(entry.value)
    elif isinstance(node, ListNode):
        for item in node.items:
            yield from scalars(item)


def check(document: Document) -> None:
    source = document.source
    for scalar in scalars(document.root):
        if source.text.startswith("*", scalar.start):
            continue  # a key that is an alias has no text of its own here
        places = offsets(source, scalar)
        assert len(places) == len(scalar.text), (source.text, scalar)
        assert places == sorted(set(places)), (source.text, scalar)
        for offset, char in enumerate(scalar.text):
            place = locate(source, scalar, offset)
            seen = source.text[place]
            if scalar.style == '"' and seen == "\\":
                continue
            assert seen == char or (char in "\n " and seen in "\r\n\x85\u2028\u2029"), (source.text, scalar, offset)


@given(yaml_texts())
def test_every_character_of_every_scalar_is_found(text: str) -> None:
    check(parse(text))


@given(yaml_noise)
def test_every_character_is_found_in_noise_too(text: str) -> None:
    check(parse(text))


@pytest.mark.parametrize(
    ("text", "needle", "place"),
    [
        ("a: &x #\u2028 TARGET\n", "TARGET", 9), ("a: &x # TARGET\u2029 a TARGET\n", "TARGET", 18),
        ("a: plain TARGET\n", "TARGET", 9), ("a: first\n   TARGET\n", "TARGET", 12),
        ("a: 'it''s TARGET'\n", "TARGET", 10), ('a: "x\\n\\u00e9 TARGET"\n', "TARGET", 14),
        ('a: "x \\\n   TARGET"\n', "TARGET", 11), ("a: |\n  x\n  TARGET\n", "TARGET", 11),
        ("a: |2-\n   x\n\n  TARGET\n", "TARGET", 15), ("a: >\n  x\n  TARGET\n", "TARGET", 11),
        ("a: >\n  x\n\n\n  TARGET\n", "TARGET", 13), ("a: |\r\n  x\r\n  TARGET\r\n", "TARGET", 13),
        ("a: 😀é TARGET\n", "TARGET", 6), ("\ufeffa: |\n  x\n  TARGET\n", "TARGET", 11),
        ('{"a": "\\ud83d\\ude00 TARGET"}', "TARGET", 20),
    ],
)  # fmt: skip
def test_known_places(text: str, needle: str, place: int) -> None:
    document = parse(text)
    assert isinstance(document.root, MapNode)
    scalar = document.root.get("a")
    assert isinstance(scalar, Scalar)
    found = locate(document.source, scalar, scalar.text.index(needle))
    assert found == place
    assert document.source.text.startswith(needle, found)


@pytest.mark.parametrize(
    ("text", "offset", "place"),
    [
        ("a: xy", 2, 5), ("a: xy", 99, 5), ("a: xy", -1, 3), ("a: 'xy'", 2, 6), ("a: 'x''y'", 99, 8),
        ("a: |\n  xy\n", 99, 10), ("a: |\n", 0, 4), ("a:", 0, 2),
    ],
)  # fmt: skip
def test_offsets_outside_the_text_are_kept_to_it(text: str, offset: int, place: int) -> None:
    document = parse(text)
    assert isinstance(document.root, MapNode)
    scalar = document.root.get("a")
    assert isinstance(scalar, Scalar)
    assert locate(document.source, scalar, offset) == place
