"""Reading YAML and JSON into nodes: values, places, keys, aliases, merges, tags."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Position, Scalar, Source, plain
from noetl.dsl.reading.parse import Document, parse, read
from tests.unit.dsl.reading.yaml_texts import yaml_texts


def kinds(document: Document) -> list[str]:
    return [problem.kind for problem in document.problems]


def value(text: str) -> Any:
    document = parse(text)
    assert kinds(document) == [], document.problems
    return plain(document.root)


def root(text: str) -> MapNode:
    found = parse(text).root
    assert isinstance(found, MapNode)
    return found


def shown(text: str, node: Node | None) -> str:
    assert node is not None
    return text[node.start : node.end]


# Values


def test_a_playbook_is_read() -> None:
    text = 'apiVersion: noetl.io/v10\nworkflow:\n- step: a\n  tool: {kind: http, url: "{{ x }}"}\n  next: [b, 1, ~]\n'
    assert value(text) == {
        "apiVersion": "noetl.io/v10",
        "workflow": [{"step": "a", "tool": {"kind": "http", "url": "{{ x }}"}, "next": ["b", 1, None]}],
    }


def test_only_plain_scalars_are_resolved() -> None:
    assert value("a: 1\nb: '1'\nc: \"true\"\nd: |-\n  1\ne: >-\n  null\n") == {
        "a": 1,
        "b": "1",
        "c": "true",
        "d": "1",
        "e": "null",
    }


@given(yaml_texts())
def test_structure_and_texts_are_those_of_yaml(text: str) -> None:
    document = parse(text)
    if any(kind != "legacy-boolean" for kind in kinds(document)):
        return
    expected = yaml.load(text, Loader=yaml.CBaseLoader)
    assert texts(document.root) == unmerged(expected, document.root)


def texts(node: Node | None) -> Any:
    if isinstance(node, MapNode):
        return {entry.key.text: texts(entry.value) for entry in node}
    if isinstance(node, ListNode):
        return [texts(item) for item in node]
    assert isinstance(node, Scalar)
    return node.text


def unmerged(expected: Any, node: Node | None) -> Any:
    """Fold the merge keys, which the reference loader keeps, and nothing else."""
    if isinstance(expected, list):
        assert isinstance(node, ListNode)
        return [unmerged(each, item) for each, item in zip(expected, node, strict=True)]
    if not isinstance(expected, dict):
        return expected
    assert isinstance(node, MapNode)
    folded = dict(expected)
    merged = folded.pop("<<", {})
    for key, each in merged.items():
        folded.setdefault(key, each)
    return {key: unmerged(each, node.get(key)) for key, each in folded.items()}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4), st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_is_read_through_the_same_path(data: dict[str, Any], indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    document = parse(text)
    if kinds(document) == ["not-text"]:
        assert not text.isprintable()
    else:
        assert kinds(document) == []
        assert plain(document.root) == json.loads(text)


def test_json_keeps_characters_that_end_a_line_in_yaml() -> None:
    data = {"a\x85b": "c\x85d", "e\u2028": ["\u2029", "f\ud7ff"], "g": "\ue000\ue001"}
    text = json.dumps(data, ensure_ascii=False)
    document = parse(text)
    assert kinds(document) == []
    assert plain(document.root) == data
    assert isinstance(document.root, MapNode)
    assert shown(text, document.root.get("a\x85b")) == '"c\x85d"'


def test_json_with_tabs_and_surrogate_pairs_keeps_its_places() -> None:
    text = '\t{\n\t"k\\ud83d\\ude00"\n\t:\t"\\ud83d\\ude00 x\\\\ud83d",\n\t"n": [1,\t2]}\n'
    document = parse(text)
    assert kinds(document) == []
    assert plain(document.root) == json.loads(text)
    assert isinstance(document.root, MapNode)
    assert shown(text, document.root.get("n")) == "[1,\t2]"
    assert shown(text, document.root.get("k😀")) == '"\\ud83d\\ude00 x\\\\ud83d"'


# Places


def test_every_node_knows_its_place() -> None:
    text = "# c\na:  foo  # c\nb:\n  - x\n  -  {c: 1}\n\n# d\nd: |\n  t\n\n\ne:\n"
    found = root(text)
    assert [shown(text, entry.key) for entry in found] == ["a", "b", "d", "e"]
    assert [shown(text, entry.value) for entry in found] == ["foo", "- x\n  -  {c: 1}", "|\n  t", ""]
    assert shown(text, found) == text[4:].rstrip()
    assert (found.flow, isinstance(found.get("b"), ListNode)) == (False, True)


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("a: é😀\nb: x\n", "b", "x"), ("a: 1\r\nb: x\r\n", "b", "x"), ("a: &n !!str x\n", "a", "x"),
        ("a: !<tag:yaml.org,2002:str> x\n", "a", "x"), ("a: &n\n  # c\n  b: c\n", "a", "b: c"),
        ("a: !!map {b: c}\n", "a", "{b: c}"), ("a: &n\nb: *n\n", "a", ""), ("a: &n x\nb: *n\n", "b", "x"),
        ("a: x\n   y\n", "a", "x\n   y"), ("a: 'x'  \n", "a", "'x'"),
    ],
)  # fmt: skip
def test_places_with_other_things_around(text: str, key: str, expected: str) -> None:
    assert shown(text, root(text).get(key)) == expected


def test_the_byte_order_mark_is_no_part_of_the_text() -> None:
    for given_text in ("\ufeffa: 1\n", "\ufeffa: 1\n".encode()):
        document = parse(given_text)
        assert document.source.text == "a: 1\n"
        assert shown(document.source.text, document.root) == "a: 1"


def test_styles_are_kept() -> None:
    found = root("a: 1\nb: '1'\nc: \"1\"\nd: |\n  1\ne: >\n  1\n")
    assert [entry.value.style for entry in found if isinstance(entry.value, Scalar)] == ["", "'", '"', "|", ">"]
    assert [entry.value.is_string for entry in found if isinstance(entry.value, Scalar)] == [
        False,
        True,
        True,
        True,
        True,
    ]


def test_source_turns_offsets_into_lines_and_back() -> None:
    source = Source("f", "ab\r\ncé\n")
    assert [source.position(offset) for offset in (0, 4, 5, 7)] == [(1, 1), (2, 1), (2, 2), (3, 1)]
    assert [source.offset(Position(*place)) for place in ((1, 1), (2, 2), (9, 9), (0, 1))] == [0, 5, 7, 0]
    assert [source.line(number) for number in (0, 1, 2, 3, 4)] == ["", "ab", "cé", "", ""]


# Keys


def test_duplicate_keys_are_refused_and_the_first_wins() -> None:
    document = parse("a: 1\nb:\n  c: 2\n  c: 3\na: 4\n'1': x\n1: z\n")
    assert plain(document.root) == {"a": 1, "b": {"c": 2}, "1": "x"}
    assert kinds(document) == ["duplicate-key"] * 3
    assert document.problems[1].message == "The key 'a' occurs twice in this map; the first is on line 1."
    assert document.source.text[document.problems[1].start : document.problems[1].end] == "a"


def test_scalar_keys_that_are_not_strings_keep_their_text() -> None:
    found = root("1: a\ntrue: b\n0x1F: c\non: d\n? e\n: f\n")
    assert [entry.key.text for entry in found] == ["1", "true", "0x1F", "on", "e"]
    assert [entry.key.value for entry in found] == [1, True, 31, "on", "e"]
    assert found.get("true") is not None
    assert "x" not in found
    assert found.entry("x") is None


@pytest.mark.parametrize(
    "text", ["? [a]\n: b\n", "? {a: b}\n: c\n", "~: a\n", "a: {? [x] : z}\n", "? &n ~\n: a\nb: 1\n"]
)
def test_keys_that_are_not_texts_are_refused(text: str) -> None:
    assert kinds(parse(text)) == ["bad-key"]


def test_a_key_may_be_an_alias_of_a_text() -> None:
    assert value("a: &k name\nb:\n  *k : x\n") == {"a": "name", "b": {"name": "x"}}


# Aliases and merges


def test_aliases_stand_for_the_node_itself() -> None:
    found = root("a: &n {x: 1}\nb: [*n, *n]\n")
    assert plain(found) == {"a": {"x": 1}, "b": [{"x": 1}, {"x": 1}]}
    listed = found.get("b")
    assert isinstance(listed, ListNode)
    assert listed.items[0] is found.get("a")
    assert shown("a: &n {x: 1}\nb: [*n, *n]\n", listed) == "[*n, *n]"


def test_an_anchor_may_be_given_again() -> None:
    assert value("a: &n 1\nb: *n\nc: &n 2\nd: *n\n") == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_merged_keys_stand_behind_the_explicit_ones_and_lose_to_them() -> None:
    text = "p: &p {x: 1, y: 1}\nq: &q {y: 2, z: 2}\na:\n  <<: *p\n  x: 0\nb:\n  w: 0\n  <<: [*p, *q]\n"
    found = root(text)
    assert plain(found.get("a")) == {"x": 0, "y": 1}
    assert plain(found.get("b")) == {"w": 0, "x": 1, "y": 1, "z": 2}
    assert list(plain(found.get("b"))) == ["w", "x", "y", "z"]


def test_a_quoted_merge_key_is_a_key_like_any_other() -> None:
    assert value("a: {'<<': 1}\n") == {"a": {"<<": 1}}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a: {<<: 1}\n", "bad-key"), ("a: {<<: [1]}\n", "bad-key"),
        ("p: &p {x: 1}\na:\n  <<: *p\n  <<: *p\n", "duplicate-key"), ("a: *n\n", "unknown-anchor"),
        ("a: &n [*n]\n", "recursive-alias"), ("a: &n\n  b: {c: *n}\n", "recursive-alias"),
        ("a: &n {<<: *n}\n", "recursive-alias"),
    ],
)  # fmt: skip
def test_bad_aliases_and_merges_are_refused(text: str, kind: str) -> None:
    assert kinds(parse(text)) == [kind]


# Tags


def test_core_tags_are_followed() -> None:
    text = "a: !!str 1\nb: !!int '2'\nc: !!float 3\nd: !!bool true\ne: !!null ''\nf: !!map {}\ng: !!seq []\nh: ! 12\n"
    assert value(text) == {"a": "1", "b": 2, "c": 3.0, "d": True, "e": None, "f": {}, "g": [], "h": "12"}


@pytest.mark.parametrize(
    "text",
    [
        "a: !!python/object:os.system x\n", "a: !mine x\n", "a: !!int x\n", "a: !!map []\n", "a: !!seq {}\n",
        "a: !!map x\n", "a: !!timestamp 2024-01-01\n", "a: !!binary aGk=\n", "a: !x!y z\n",
        "%TAG ! tag:x,1:\n---\na: !y z\n",
    ],
)  # fmt: skip
def test_other_tags_are_refused(text: str) -> None:
    assert kinds(parse(text)) == ["tag"]


def test_a_tag_is_named_as_it_is_written() -> None:
    (problem,) = parse("a: !!python/object/apply:os.system [x]\n").problems
    assert "cannot use the tag !!python/object/apply:os.system" in problem.message


def test_a_problem_with_a_tag_points_at_the_tag() -> None:
    document = parse("a: &n !mine x\n")
    assert document.source.text[document.problems[0].start : document.problems[0].end] == "!mine"


# The document


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"), ("\n# c\n", "empty"), ("---\n", "empty"), ("[]", "not-a-map"), ("x", "not-a-map"),
        ("~", "not-a-map"), ("''", "not-a-map"), ("a: 1\n---\nb: 2\n", "many-documents"),
        ("a: 1\n...\n---\n", "many-documents"), ("a: 1\n...\n%YAML 1.2\n---\nb: 1\n", "many-documents"),
    ],
)  # fmt: skip
def test_documents_that_are_not_one_map(text: str, kind: str) -> None:
    assert kinds(parse(text)) == [kind]


@pytest.mark.parametrize(
    "text", ["--- # c\na: 1\n", "%YAML 1.2\n---\na: 1\n", "a: 1\n...\n# c\n", "a: 1\n...\n\n...\n", "{a: 1}"]
)
def test_documents_with_marks_around_one_map(text: str) -> None:
    assert value(text) == {"a": 1}


def test_old_booleans_are_strings_with_a_notice_where_they_are_values() -> None:
    document = parse("on: yes\na: [No, 'no', y]\nb: &n off\nc: *n\nd: nope\n")
    assert plain(document.root) == {"on": "yes", "a": ["No", "no", "y"], "b": "off", "c": "off", "d": "nope"}
    assert kinds(document) == ["legacy-boolean"] * 4
    assert [document.source.text[found.start : found.end] for found in document.problems] == ["yes", "No", "y", "off"]


def test_problems_come_in_the_order_of_the_text() -> None:
    starts = [problem.start for problem in parse("a: yes\na: 1\nb: *n\nc: !x 1\nd: {{ x }}\ne: no\n").problems]
    assert starts == sorted(starts)
    assert len(starts) == 6


def test_numbers_beyond_floats_are_infinite() -> None:
    assert value("a: 1e400\n") == {"a": math.inf}


@given(yaml_texts())
def test_the_parser_in_python_reads_the_same(text: str) -> None:
    """Both parsers serve; where both find a text well formed they give the same data."""
    source = Source("f", text)
    fast, slow = read(source, yaml.CLoader), read(source, yaml.Loader)
    if kinds(fast) == kinds(slow) == []:
        assert plain(fast.root) == plain(slow.root)
        assert isinstance(fast.root, MapNode)
        assert isinstance(slow.root, MapNode)
        assert fast.root.start == slow.root.start
