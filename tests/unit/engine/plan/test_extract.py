"""What the server's templates read of a result, and its extraction."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.playbook import Playbook
from noetl.engine.plan.extract import below, for_item, for_task, merged, pick, server_reads, wanted
from noetl.expr import Result, compile_template

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: t, path: t}\nworkflow:\n"


def playbook(steps: str) -> Playbook:
    return normalize(parse(HEAD + indent(dedent(steps), "  "), "t.yaml"))


def test_every_place_that_the_server_renders_counts() -> None:
    found = playbook(
        """
        - step: load
          tool: {kind: http, url: "http://127.0.0.1/{{ load.unread }}"}
          set: {ctx.total: "{{ outcome.result.total }}"}
          next:
            spec: {mode: exclusive}
            arcs:
              - {step: each, when: "{{ output.data.ready and outcome.status == 'ok' }}", args: {first: "{{ load.rows[0].id }}"}}
        - step: each
          loop: {in: "{{ load.items }}", iterator: item}
          tool: {kind: noop}
          spec: {policy: {admit: {rules: [{when: "{{ event.payload.result.open }}", then: {allow: true}}]}}}
        """
    )
    assert server_reads(found, "load") == {
        "total": True, "ready": True, "rows": {0: {"id": True}}, "items": True, "open": True,
    }  # fmt: skip
    assert server_reads(found, "each") == {"open": True}


def test_a_result_that_is_read_whole_is_wanted_whole() -> None:
    found = playbook(
        """
        - step: a
          tool: {kind: noop}
          next: [{step: b, args: {all: "{{ outcome.result }}"}}]
        - step: b
          tool: {kind: noop}
        """
    )
    assert server_reads(found, "a") is True
    assert server_reads(found, "b") == {}


def test_a_task_is_read_through_its_step_and_by_its_label() -> None:
    tree = wanted([("n",), ("get", "x"), ("results", "get", "y"), ("other", "z")])
    found = for_task(tree, "get")
    assert below(found, "n") is below(found, "x") is below(found, "y") is True
    assert for_task(wanted([("get",)]), "get") is True
    assert below(for_task(wanted([("data", "get", "x")]), "get"), "x") is True


def test_items_are_wanted_when_the_results_are_read() -> None:
    assert for_item(wanted([("results", 0, "x")])) is for_item(wanted([("data", "results")])) is for_item(True) is True
    assert for_item(wanted([("stats", "total")])) is for_item(False) is False


RESULT = {
    "data": {"items": [1, 2], "next": "p2"},
    "status": 200,
    "rows": [{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 5}],
}


@pytest.mark.parametrize(
    "text",
    [
        "{{ s.status }}", "{{ s.data.items }}", "{{ s.items }}", "{{ s.next }}", "{{ s.rows[1].a }}", "{{ s.rows[0] }}",
        "{{ s.rows[-1].a }}", "{{ s.rows | length }}", "{{ s.data.status | default('none') }}", "{{ s.missing | default(7) }}",
        "{{ s.data.items[0] + s.rows[2].a }}", "{{ s.rows[9] | default('none') }}", "{{ s.get('status') }}",
    ],
)  # fmt: skip
def test_the_same_lookups_find_the_same_in_what_was_taken(text: str) -> None:
    compiled = compile_template(text)
    tree = wanted(read.path[1:] for read in compiled.reads)
    part = pick(RESULT, tree)
    assert compiled.evaluate({"s": Result(part)}) == compiled.evaluate({"s": Result(RESULT)})


def test_what_is_not_read_is_left_out() -> None:
    assert pick(RESULT, wanted([("rows", 1, "a")])) == {"rows": [None, {"a": 3}]}
    assert pick({"big": "x" * 1000, "n": 1}, wanted([("data", "n")])) == {"n": 1}


keys = st.sampled_from(["a", "b", "data"]) | st.integers(0, 3)
paths = st.lists(st.lists(keys, min_size=1, max_size=4).map(tuple), max_size=6)
values: st.SearchStrategy[Any] = st.recursive(
    st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "data"]), inner, max_size=3),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(["a", "b", "data"]), values, max_size=3), paths)
def test_every_path_reads_the_same_in_the_part_and_in_the_whole(value: dict[str, Any], read: list[Any]) -> None:
    part = pick(value, wanted(read))
    for path in read:
        if isinstance(path[0], str):
            text = "{{ s" + "".join(f"[{key!r}]" for key in path) + " | default('(none)') }}"
            compiled = compile_template(text)
            assert compiled.evaluate({"s": Result(part)}) == compiled.evaluate({"s": Result(value)})


@given(paths, paths)
def test_trees_put_together_hold_both(first: list[Any], second: list[Any]) -> None:
    assert merged(wanted(first), wanted(second)) == wanted([*first, *second])
