"""A pinned playbook reads back as the same tree; its hash ignores spelling."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.pin import pinned, unpinned
from noetl.dsl.tree.playbook import Playbook
from tests.corpus.corpus import files
from tests.unit.dsl.playbooks import playbooks, written


def read(text: str | bytes) -> Playbook:
    return normalize(parse(text))


@given(playbooks())
def test_a_pinned_tree_comes_back(meaning: dict[str, Any]) -> None:
    tree = read(written(meaning, "io"))
    data, name = pinned(tree)
    assert unpinned(data) == tree
    assert pinned(unpinned(data)) == (data, name)


def test_every_playbook_of_the_corpus_comes_back() -> None:
    for path in files("good"):
        tree = read(path.read_bytes())
        assert unpinned(pinned(tree)[0]) == tree, path


def test_the_hash_is_of_the_meaning() -> None:
    one = read("workflow:\n  - step: a\n    tool: {kind: noop}\n")
    same = read("# a comment\nworkflow: [{step: a, tool: [{a_task: {kind: noop}}]}]\n")
    other = read("workflow:\n  - step: b\n    tool: {kind: noop}\n")
    assert pinned(one)[1] == pinned(same)[1] != pinned(other)[1]


def test_odd_values_survive() -> None:
    values = '{a: "1e5", b: 1.0e+20, c: "\\u0000\\t\\u2028", d: 123456789012345678901234567890, e: ["yes", null, true], f: ""}'
    tree = read(f"workload: {values}\nworkflow:\n  - step: a\n    tool: {{kind: noop}}\n")
    back = unpinned(pinned(tree)[0])
    assert {name: value.data for name, value in back.workload.items()} == {
        name: value.data for name, value in tree.workload.items()
    }
