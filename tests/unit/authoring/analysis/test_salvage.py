"""Texts that are not YAML yet still have steps, tasks and keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.authoring.analysis.salvage import salvage
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar, plain
from noetl.dsl.reading.parse import Document, parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.playbook import Playbook
from tests.unit.authoring.editing import good

BROKEN = """\
workflow:
  - step: first
    tool: { kind: http, url: "{{ workload.
  - step: second
    tool:
      - name: get
        kind: noop
      - put: { kind: noop, result: [1, {deep: 2
    next: third
  - step: third
    ne
"""


def shape(playbook: Playbook) -> list[tuple[str, list[tuple[str, str]], list[str]]]:
    """Return steps, their tasks with kinds, and the targets of arcs."""
    return [
        (step.name, [(task.label, task.kind) for task in step.tasks], [arc.step for arc in step.arcs])
        for step in playbook.workflow
    ]


def read(text: str) -> Playbook:
    return normalize(Document(parse("").source, salvage(text), ()))


def test_good_playbooks_are_salvaged_with_all_their_steps_tasks_and_arcs() -> None:
    # Aliases are not followed.
    plainly = [(name, reading) for name, reading in good() if "<<" not in reading.text and ": *" not in reading.text]
    different = [name for name, reading in plainly if shape(read(reading.text)) != shape(reading.exact.playbook)]
    assert different == []
    assert len(plainly) > len(good()) - 5


def test_what_is_open_ends_with_its_line_or_its_block() -> None:
    assert shape(read(BROKEN)) == [
        ("first", [("first_task", "http")], []),
        ("second", [("get", "noop"), ("put", "noop")], ["third"]),
        ("third", [], []),
    ]
    assert plain(salvage(BROKEN))["workflow"][2] == {"step": "third", "ne": None}


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", None),
        ("# only words\n---\n...\n", None),
        ("apiV", "apiV"),
        ("a: 1\nb\n", {"a": 1, "b": None}),
        ("a:\n- 1\n- x: 2\n  y\nb: 3", {"a": [1, {"x": 2, "y": None}], "b": 3}),
        ("a: 'it''s'\nb: \"x # y\" # z\nc: d # e", {"a": "it 's", "b": "x # y", "c": "d"}),
        ("a: |\n  one\n\n  two\nb: >-\n  x\n", {"a": "one\n\ntwo\n", "b": "x\n"}),
        ("a: {b: [1, {c: d}, 'e'], f: g", {"a": {"b": [1, {"c": "d"}, "e"], "f": "g"}}),
        ("a: { b: {{ x.y }}, c: 1 }", {"a": {"b": "{{ x.y }}", "c": 1}}),
        ("a: {{ x.y }}/z\nb: 1", {"a": "{{ x.y }}/z", "b": 1}),
        ('{"a": [1, 2, {"b": "c', {"a": [1, 2, {"b": "c"}]}),
        ("a: &x {b: 1}\nc: !!str 2", {"a": {"b": 1}, "c": 2}),
        ("-\n  - a\n- b", [["a"], "b"]),
    ],
)
def test_pieces(text: str, data: object) -> None:
    assert plain(salvage(text)) == data


def nodes(node: Node | None) -> list[Node]:
    if isinstance(node, MapNode):
        return [node, *(part for entry in node for below in entry for part in nodes(below))]
    if isinstance(node, ListNode):
        return [node, *(part for item in node for part in nodes(item))]
    return [node] if node is not None else []


def check_places(text: str) -> None:
    for node in nodes(salvage(text)):
        assert 0 <= node.start <= node.end <= len(text)
        if isinstance(node, Scalar) and not node.style:
            assert text[node.start : node.end] == node.text


@given(st.integers(0, len(good()) - 1), st.floats(0, 1), st.floats(0, 1))
def test_any_part_of_a_playbook_can_be_salvaged(number: int, one: float, other: float) -> None:
    text = good()[number][1].text
    start, end = sorted((int(one * len(text)), int(other * len(text))))
    check_places(text[:start])
    check_places(text[:start] + text[end:])


@given(st.text(st.sampled_from(list("ab:{}[],'\"|>-#&*!% \n\r\t")), max_size=60))
def test_any_text_can_be_salvaged(text: str) -> None:
    check_places(text)


@pytest.mark.parametrize(
    "text",
    ["- " * 5000, "{" * 5000, "[" * 5000, "a:\n" + "".join(" " * n + "b:\n" for n in range(300)), " " * 100_000 + "x:"],
)
def test_deep_and_wide_texts_end_in_time_and_in_bounds(text: str) -> None:
    check_places(text)
