"""Comparison with the grammar: findings, their terms, and misplaced keys."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from noetl.dsl.checking.shape import findings, fits
from noetl.dsl.checking.shape_findings import ShapeFinding, stand_ins
from noetl.dsl.grammar import LEVELS
from noetl.dsl.grammar.misplaced_keys import Places
from noetl.dsl.grammar.titles import TITLES, title, where
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type
from noetl.dsl.grammar.wording import listed, shown, stands, takes
from noetl.dsl.reading.nodes import ListNode, MapNode, Scalar
from noetl.dsl.reading.parse import parse
from tests.unit.dsl.playbooks import Spelling, playbooks, written
from tests.unit.dsl.rules.samples import HEAD, KINDS, with_rules, with_step, with_task


def scalar(value: Any) -> Scalar:
    return Scalar(0, 0, value, str(value))


def found_in(text: str) -> list[tuple[str, str, str]]:
    """Return the findings as kind, level and name."""
    return [(one.kind, one.level.name, one.name) for one in findings(parse(text).root, KINDS)]


# Levels


def test_every_level_has_words_and_no_words_are_left_over() -> None:
    assert set(TITLES) == set(LEVELS)


@pytest.mark.parametrize(
    ("name", "words"),
    [("task:http", "an http task"), ("task_spec:postgres", "the `spec` of a postgres task"), ("step", "a step"),
     ("tools.python.script", "`script` of the kind python"), ("tools.http", "the kind `http`"), ("of_a_plugin", "`of_a_plugin`")],
)  # fmt: skip
def test_levels_of_tool_kinds_have_words_too(name: str, words: str) -> None:
    assert title(Level(name, "", ())) == words


def test_the_words_tell_things_from_places() -> None:
    assert where(LEVELS["arc"]) == "in an arc of `next`"
    assert where(LEVELS["step"]) == "on a step"
    assert where(LEVELS["executor_spec"]) == "in `executor.spec`"


def test_a_level_finds_its_fields_by_every_name_and_the_first_wins() -> None:
    first, second = Field("a", Text(), "", aliases=("b",)), Field("b", Flag(), "", required=True)
    level = Level("x", "", (first, second))
    assert [level.field(name) for name in ("a", "b", "c")] == [first, first, None]
    assert level.required == (second,)
    assert level == Level("x", "", (first, second))


def test_every_level_of_the_grammar_can_be_walked_to() -> None:
    """A level that nothing refers to would never be checked."""
    named = {name for level in LEVELS.values() for field in level.fields for name in levels_in(field.type)}
    assert set(LEVELS) - named == {"playbook", "subscription"}


def levels_in(kind: Type) -> set[str]:
    match kind:
        case LevelOf(name, None):
            return {name}
        case ListOf(inner) | MapOf(inner):
            return levels_in(inner)
        case OneOf(options):
            return {name for option in options for name in levels_in(option)}
    return set()


# Words


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Text(), "text"), (Number(), "a number"), (Number(integer=True, least=1), "a whole number of 1 or more"),
        (Text(length=(1, 200)), "text of 1 to 200 characters"),
        (Number(integer=True, least=1, most=1_000_000), "a whole number from 1 to 1000000"),
        (Number(least=1 / 86_400, finite=True), "a finite number of 1/86400 or more"),
        (Number(least=0, most=1.5), "a number from 0 to 1.5"), (Number(most=9), "a number of at most 9"),
        (Choice(("a", "b"), prefixes=("c:",)), "one of a, b, c:<…>"), (Choice(("a",)), "a"),
        (OneOf((LevelOf("step"), MapOf(Type()), ListOf(Text()))), "a map, or a list"),
        (OneOf((Flag(), Text())), "true or false, or text"), (Type(), "any value"),
    ],
)  # fmt: skip
def test_types_in_words(kind: Type, words: str) -> None:
    assert takes(kind) == words


def test_values_in_words() -> None:
    nodes = [scalar("a  b"), scalar(3), scalar(2.5), scalar(True), scalar(None), MapNode(0, 0, ()), ListNode(0, 0, ())]
    wanted = ["the text 'a b'", "the number 3", "the number 2.5", "true", "nothing", "a map", "a list"]
    assert [stands(node) for node in nodes] == wanted
    assert len(shown(scalar("x" * 100))) == 40
    assert [listed(["a"]), listed(["a", "b", "c"])] == ["'a'", "'a', 'b' and 'c'"]


@pytest.mark.parametrize(
    ("value", "fitting"),
    [
        (None, {"Type", "OneOf"}), (True, {"Type", "OneOf", "Text", "Flag"}),
        (3, {"Type", "OneOf", "Text", "Number"}), (2.5, {"Type", "OneOf", "Text", "Number"}),
        ("3", {"Type", "OneOf", "Text", "Choice"}),
    ],
)  # fmt: skip
def test_which_types_a_scalar_fits(value: Any, fitting: set[str]) -> None:
    kinds: list[Type] = [
        Type(), Text(), Flag(), Number(), Choice(("a",)), OneOf((Type(),)), ListOf(Text()), MapOf(Text()),
    ]  # fmt: skip
    assert {type(kind).__name__ for kind in kinds if fits(scalar(value), kind)} == fitting


# Places


@pytest.mark.parametrize(
    ("level", "key", "value", "words"),
    [
        ("step", "mode", "parallel", "under `loop`"), ("step", "mode", "inclusive", "under `next.spec`"),
        ("step", "policy", None, "under `spec`"), ("step", "allow", True, "under `spec.policy.admit.rules[].then`"),
        ("step_spec", "next", "b", "on the step"), ("task", "policy", None, "under `spec`"),
        ("task", "attempts", 3, "under `spec.policy.rules[].then`"),
        ("task", "iterator", "x", "under `loop` of the step"), ("task_rule", "do", "fail", "under `then`"),
        ("task_then", "when", True, "on the rule"), ("arc", "mode", "inclusive", "under `spec` of `next`"),
        ("next", "step", "b", "in an item of `arcs`"), ("loop_policy", "mode", "best_effort", "under `failure`"),
        ("loop_policy", "mode", "parallel", "in `loop.spec`"), ("loop_spec", "in", "x", "in `loop`"),
        ("executor", "entry_step", "a", "under `spec`"),
        ("step", "entry_step", "a", "under `executor.spec` at the root"),
        ("metadata", "workload", None, "at the root of the playbook"), ("playbook", "path", "a", "under `metadata`"),
        ("playbook", "tool", None, "in an item of `workflow`"),
    ],
)  # fmt: skip
def test_where_a_key_belongs(level: str, key: str, value: Any, words: str) -> None:
    assert str(Places(LEVELS).find(level, key, scalar(value))) == words


@pytest.mark.parametrize(
    ("level", "key", "value"),
    [("step", "colour", 1), ("arc", "name", "a"), ("loop", "kind", "a"), ("executor", "input", None), ("step", "mode", "fast")],
)  # fmt: skip
def test_a_vague_or_unknown_key_belongs_nowhere(level: str, key: str, value: Any) -> None:
    assert Places(LEVELS).find(level, key, scalar(value)) is None


# Findings


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (HEAD, [("missing", "playbook", "workflow")]),
        (HEAD + "workflow: []", [("empty-list", "playbook", "workflow")]),
        (HEAD + "workflow: a", [("wrong-type", "playbook", "workflow")]),
        (HEAD + "workflow: [a]", [("wrong-type", "playbook", "workflow")]),
        (HEAD + "workflow: [{ step: '' , tool: { kind: noop } }]", [("missing", "step", "step")]),
        (with_task("kind: htpt\nanything: goes"), []),
        (with_task("kind: http\nurll: a"), [("unknown-key", "task:http", "urll")]),
        (with_task("kind: http\nspec: { ulr: a }"), [("unknown-key", "task_spec:http", "ulr"), ("missing", "task:http", "url")]),
        (with_task("kind: http\nurl: a\nspec: { auth: b, output: { store: file } }"), []),
        (with_task("kind: noop\nspec: { set: { a: 1 } }"), [("set-in-spec", "task_spec:noop", "set")]),
        (with_task("kind: htpt\nspec: { set: { a: 1 } }"), [("set-in-spec", "task_spec", "set")]),
        (with_task("kind: python\ncode:"), [("missing", "task:python", "code or code_b64 or script")]),
        (with_task("kind: python\ncode: a\nscript:"), []),
        (with_task("kind: http\nurl:"), [("wrong-type", "task:http", "url")]),
        (with_rules("- when:\n  then: { do: fail }"), [("incomplete", "task_rule", "when or else")]),
        (with_rules("- else: { thn: { do: fail } }"), [("unknown-key", "task_else", "thn")]),
        (with_rules("- else: { do: fail, attmpts: 3 }"), [("unknown-key", "task_then", "attmpts")]),
        (with_rules("- when: true"), [("incomplete", "task_rule", "then")]),
        (with_step("tool: { a: { kind: noop } }"), []),
        (with_step("tool: { kind: noop }\nspec: { policy: { rules: [{ when: true, then: { do: fail } }] } }"),
         [("control", "step_policy", "rules")]),
        (with_step("tool: { kind: noop }\nspec: { policy: { rules: [{ when: true, then: { allow: true } }] } }"),
         [("misplaced", "step_policy", "rules")]),
        (HEAD + "workbook: { w: { tool: { kind: noop } } }\nworkflow: [{ step: a, tool: { kind: noop } }]", []),
        (HEAD + "workbook: [{ w: { kind: noop, colour: red } }]\nworkflow: [{ step: a, tool: { kind: noop } }]",
         [("unknown-key", "task:noop", "colour")]),
    ],
)  # fmt: skip
def test_what_is_found(text: str, wanted: list[tuple[str, str, str]]) -> None:
    assert found_in(text) == wanted


def test_the_input_of_a_kind_is_told_from_what_every_task_has() -> None:
    found = findings(parse(with_task("kind: http\nurrl: a\nurl: b\nspec: { policcy: {} }")).root, KINDS)
    assert [(one.name, one.tool.name if one.tool else None) for one in found] == [("urrl", "http"), ("policcy", "http")]
    (inner,) = findings(parse(with_task("kind: http\nurl: b\nspec: { policy: { rulez: [] } }")).root, KINDS)
    assert (inner.name, inner.tool, inner.meant) == ("rulez", None, "rules")


def test_a_key_stands_in_for_the_field_it_is_like() -> None:
    document = parse(with_step("next: { step: work }\ntoool: { kind: noop }\nloop: { collection: [1] }"))
    found = findings(document.root, KINDS)
    names = {name for _, name in stand_ins(found)}
    assert names == {"arcs", "tool", "in"}
    assert "missing" not in {one.kind for one in found}


# Laws

_keys = st.sampled_from(sorted({name for level in LEVELS.values() for name in level.names()} | {"x", "type", "case"}))
_leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 9), st.floats(allow_nan=False), st.text("ab{}%: -", max_size=4),
                    st.sampled_from(["http", "noop", "retry", "parallel", "{{ ctx.a }}", "{% if a %}", "route_edge:", ""]))  # fmt: skip
_documents = st.recursive(
    _leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=5), max_leaves=25
)


def every(text: str) -> tuple[ShapeFinding, ...]:
    document = parse(text)
    found = findings(document.root, KINDS)
    for one in found:
        assert 0 <= one.node.start <= one.node.end <= len(document.source.text)
        assert one.name or one.level.name == "playbook"
    return found


@given(_documents)
def test_any_document_is_compared_without_an_error(data: Any) -> None:
    text = json.dumps(data)
    assert [(one.kind, one.node.start) for one in every(text)] == [(one.kind, one.node.start) for one in every(text)]


@given(_keys, _documents, st.sampled_from(["playbook", "step", "loop", "next", "executor_spec"]))
def test_a_key_that_a_level_does_not_have_is_always_told(key: str, value: Any, level: str) -> None:
    assume(LEVELS[level].field(key) is None)
    loop: dict[str, Any] = {"in": [1]}
    router: dict[str, Any] = {"arcs": []}
    spec: dict[str, Any] = {"pool": "a"}
    step = {"step": "a", "tool": {"kind": "noop"}, "loop": loop, "next": router}
    root = {"executor": {"spec": spec}, "workflow": [step]}
    holders: dict[str, dict[str, Any]] = {
        "playbook": root, "step": step, "loop": loop, "next": router, "executor_spec": spec,
    }  # fmt: skip
    holders[level][key] = value
    text = HEAD + "".join(f"{name}: {json.dumps(part)}\n" for name, part in root.items())
    assert key in [one.name for one in every(text)]


SPELLINGS: tuple[Spelling, ...] = ("v10", "io")


@given(playbooks())
def test_what_is_wrong_does_not_depend_on_the_spelling(meaning: dict[str, Any]) -> None:
    canonical, io = (sorted(one.kind for one in every(written(meaning, spelling))) for spelling in SPELLINGS)
    assert canonical == io
