"""Upgrades: comments stay, the meaning is the same, a second one does nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.dialects.lowering import lower
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.upgrade import upgrade
from tests.unit.dsl.rules.samples import HEAD, with_step

NAMES = ("start", "load", "each", "tell", "end")
CONDITIONS = (
    "{{ event.name == 'step.exit' }}", "{{ response.n > 3 }}", "{{ event.name == 'call.error' and error.kind == 'x' }}",
    "{{ event.name == 'step.enter' and workload.a }}", "{{ event.name == 'step.exit' or event.name == 'sink.processed' }}",
    "{{ event.name == 'loop.iteration.done' }}", "{{ error is defined }}", "{{ vars.n == 1 or workload.a }}", "{{ event.name == 'call.done' and response is defined }}",
)  # fmt: skip
VALUES = st.sampled_from(
    ["{{ result.n }}", "{{ this }}", "n: {{ response.n }}", 3, True, None, 'it\'s "so"', [1, "{{ vars.a }}"]]
)
SINK = st.sampled_from([
    {"tool": {"kind": "postgres", "auth": "pg", "table": "rows"}},
    {"postgres": {"auth": "pg", "table": "rows", "args": {"a": "{{ this }}"}}},
    [{"duckdb": {"table": "a"}}, {"postgres": {"auth": "pg", "command": "SELECT '{{ result.n }}'\nFROM t\n"}}],
    {"storage": "postgres", "auth": "pg", "table": "rows", "mode": "upsert", "key": "id"},
])  # fmt: skip
TARGET = st.sampled_from(NAMES)
NEXT: st.SearchStrategy[Any] = st.one_of(
    TARGET,
    st.lists(TARGET, min_size=1, max_size=2, unique=True),
    st.lists(
        st.fixed_dictionaries({"step": TARGET}, optional={"when": st.sampled_from(CONDITIONS)}), min_size=1, max_size=2
    ),
    st.fixed_dictionaries({"when": st.sampled_from(CONDITIONS), "then": st.lists(TARGET, min_size=1, max_size=2)}).map(
        lambda arc: [{**arc, "args": {"a": "{{ response.n }}"}, "set": {"b": 1}}, {"else": "end"}]
    ),
    st.fixed_dictionaries({"step": TARGET}, optional={"data": st.just({"a": 1})}),
)
RULE = st.fixed_dictionaries(
    {"when": st.sampled_from(CONDITIONS)},
    optional={},
).flatmap(
    lambda rule: (
        st.fixed_dictionaries(
            {},
            optional={
                "next": st.one_of(TARGET, TARGET.map(lambda step: [{"step": step, "args": {"a": "{{ vars.a }}"}}])),
                "set": st.dictionaries(st.sampled_from("ab"), VALUES, min_size=1),
                "sink": SINK,
                "retry": st.sampled_from([2, {"max_attempts": 3, "delay": 1, "backoff_multiplier": 1.5}]),
            },
        )
        .filter(bool)
        .map(lambda then: {**rule, "then": then})
    )
)
RETRY: st.SearchStrategy[Any] = st.sampled_from([
    2, {"max_attempts": 3, "delay": 1}, [{"when": "{{ error.status == 503 }}", "then": {"max_attempts": 2, "backoff": "linear"}}],
    [{"when": "{{ response.more }}", "then": {"next_call": {"params": {"p": "{{ response.p }}"}, "url": "{{ response.u }}"},
      "collect": {"strategy": "append", "path": "rows", "into": "all"}, "per_iteration": {"sink": {"postgres": {"table": "r"}}}}}],
])  # fmt: skip
TOOL: st.SearchStrategy[Any] = st.sampled_from([
    {"kind": "http", "url": "http://x/{{ workload.a }}"}, {"type": "noop", "result": {"n": 1}},
    {"kind": "python", "code": "# one\nresult = 1\n", "args": {"a": 1}}, [{"one": {"kind": "noop"}}, {"two": {"type": "noop", "vars": {"n": "{{ result }}"}}}],
    {"kind": "postgres", "query": "SELECT %(id)s", "args": {"id": "{{ workload.a }}"}},
])  # fmt: skip
OPTIONAL: dict[Any, Any] = {
    "vars": st.dictionaries(st.sampled_from("nm"), VALUES, min_size=1),
    "case": st.lists(RULE, min_size=1, max_size=2),
    "sink": SINK,
    "retry": RETRY,
    "when": st.sampled_from(CONDITIONS),
    "assert": st.just({"expects": ["a"], "returns": "n"}),
    "result": st.sampled_from(
        [
            {"collect": {"into": "all", "path": "n", "strategy": "extend"}},
            {"as": "kept"},
            {"as": "kept", "sink": [{"postgres": {"table": "r"}}]},
        ]
    ),
    "loop": st.sampled_from(
        [{"collection": [1], "element": "x"}, {"items": [2], "iterator": "x", "max_concurrency": 2}]
    ),
    "next": NEXT,
}
SECOND = st.builds(
    lambda steps, version: {
        "apiVersion": version,
        "workflow": [{"step": name, **step} for name, step in steps.items()],
    },
    st.dictionaries(TARGET, st.fixed_dictionaries({"tool": TOOL}, optional=OPTIONAL), min_size=1, max_size=4),
    st.sampled_from(["noetl.io/v1", "noetl.io/v2", "noetl.io/v10"]),
)
TYPED = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["noop", "http", "python"])},
        optional={
            "when": st.sampled_from(CONDITIONS),
            "pass": st.booleans(),
            "with": st.just({"a": "{{ workload.a }}"}),
            "save": SINK,
        },
    ),
    st.fixed_dictionaries({"type": st.just("iterator"), "collection": st.just([1]), "element": st.just("x")}).flatmap(
        lambda step: st.sampled_from(
            [
                {"type": "noop", "result": "{{ _loop.current_index }}"},
                {"type": "playbook", "path": "a/b"},
                {
                    "type": "iterator",
                    "collection": "{{ [x] }}",
                    "element": "y",
                    "name": "inner",
                    "desc": "d",
                    "task": [
                        {"task": "one", "type": "http", "save": {"storage": "postgres", "table": "{{ y }}"}},
                        {"type": "noop", "result": "{{ _loop.current_item }}"},
                    ],
                },
            ]
        ).map(lambda task: {**step, "task": task})
    ),
    st.just({"call": {"type": "workbook", "name": "hello"}}),
)
FIRST = st.builds(
    lambda steps, workbook: {
        "apiVersion": "noetl.io/v1",
        **({"workbook": workbook} if workbook else {}),
        "steps": [{"name": name, **step} for name, step in steps.items()],
    },
    st.dictionaries(TARGET, TYPED, min_size=1, max_size=4),
    st.sampled_from(
        [
            None,
            {"hello": {"type": "http", "with": {"a": 1}, "sink": {"postgres": {"table": "{{ input.a }}"}}}},
            [
                {
                    "name": "hello",
                    "tool": {"kind": "http", "retry": 2},
                    "save": [{"postgres": {"table": "r"}}, {"duckdb": {"table": "s"}}],
                }
            ],
            [{"hello": {"type": "noop", "retry": {"max_attempts": 2}}}, {"other": {"kind": "noop"}}],
        ]
    ),
)


class _Written(yaml.SafeDumper):
    """Writes shared values out."""

    def ignore_aliases(self, data: object) -> bool:
        return True


OLDER = st.one_of(FIRST, SECOND).map(
    lambda root: {"kind": "Playbook", "metadata": {"name": "a", "path": "b"}, "workload": {"a": 1}, **root}
)


@given(OLDER, st.booleans())
def test_an_upgrade_means_the_same_and_a_second_one_does_nothing(data: dict[str, Any], as_json: bool) -> None:
    text = json.dumps(data) if as_json else yaml.dump(data, Dumper=_Written, sort_keys=False)
    made = upgrade(text)
    assert normalize(parse(made.text)) == normalize(parse(text))
    assert upgrade(made.text).text == made.text
    before = lower(parse(text))
    if before.refusals:
        assert made.text == text
    elif before.changes and not made.problem:
        assert lower(parse(made.text)).changes == ()
    assert not made.problem.startswith("The new text")


COMMENTED = """\
# The head.
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: a, path: b }  # who

workflow:
  # Loads.
  - step: load  # the first
    tool:
      # The request.
      kind: http
      url: 'http://127.0.0.1'  # of the service
    vars:
      # The number.
      n: "{{ result.n }}"  # kept
    case:
      # Many.
      - when: "{{ response.n > 3 }}"  # busy
        then:
          # Tell.
          next: [{ step: end }]  # over
  # Ends.
  - step: end
    tool: { kind: noop }
# The tail.
"""


def test_every_comment_stays_and_near_what_it_is_about() -> None:
    made = upgrade(COMMENTED)
    assert made.is_done
    lines = made.text.splitlines()
    for comment in (
        "# The head.",
        "# who",
        "# Loads.",
        "# the first",
        "# The request.",
        "# of the service",
        "# The number.",
        "# kept",
        "# Many.",
        "# busy",
        "# Tell.",
        "# over",
        "# Ends.",
        "# The tail.",
    ):
        assert made.text.count(comment) == 1
    assert any("ctx.n" in line and "# kept" in line for line in lines)
    assert any("when:" in line and "# busy" in line for line in lines)


def test_a_canonical_playbook_is_not_even_formatted() -> None:
    text = with_step("tool:   { kind: noop }")
    made = upgrade(text)
    assert (made.text, made.changes, made.problem) == (text, (), "")


def test_what_has_no_equivalent_is_not_upgraded() -> None:
    text = with_step("command: echo\nvars: { a: 1 }")
    made = upgrade(text)
    assert made.text == text
    assert made.problem
    assert [refusal.reason for refusal in made.refusals]


@pytest.mark.parametrize("text", ["", "a: [", HEAD + "workflow:\n  - ? a\n    : b\n"])
def test_a_text_that_cannot_be_read_stays(text: str) -> None:
    assert upgrade(text).text == text


def test_line_breaks_of_windows_stay() -> None:
    text = with_step("tool: { kind: noop }\nvars: { a: 1 }").replace("\n", "\r\n")
    made = upgrade(text)
    assert made.is_done
    assert made.text.count("\r\n") == made.text.count("\n")


def test_an_anchor_is_kept_where_it_still_means_the_same() -> None:
    text = with_step("tool: { kind: noop, result: &v { a: 1 } }\nvars: { a: 1 }\ninput: *v")
    made = upgrade(text)
    assert "&v" in made.text
    assert "input: *v" in made.text
    assert normalize(parse(made.text)) == normalize(parse(text))


def test_a_file_stays_where_an_anchor_would_mean_two_things() -> None:
    text = with_step("tool: &t { kind: noop }\nvars: { a: 1 }\nretry: 2")
    text += "  - step: other\n    tool: *t\n"
    made = upgrade(text)
    assert made.text == text
    assert "anchors" in made.problem


def test_a_text_without_quotes_that_a_line_would_cut_stays_in_a_block() -> None:
    text = HEAD + "steps:\n  - name: a\n    type: shell\n    command: echo {{ workload.a }}, [b]\n"
    made = upgrade(text)
    assert made.problem == ""
    assert "      command: echo {{ workload.a }}, [b]\n" in made.text
