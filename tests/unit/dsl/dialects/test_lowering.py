"""Lowering: a canonical document stays as it is; positions are those of the text."""

from __future__ import annotations

import pytest

from noetl.dsl.checking.context import CheckContext
from noetl.dsl.dialects.lowering import LOWERINGS, lower
from noetl.dsl.reading.nodes import MapNode, Rewritten, Scalar
from noetl.dsl.reading.parse import parse
from noetl.dsl.reading.source_map import locate
from noetl.dsl.validate import validate
from noetl.expr import has_template
from tests.corpus.corpus import files
from tests.unit.dsl.rules.samples import HEAD, KINDS, with_step


@pytest.mark.parametrize("path", files("good"), ids=lambda path: path.name)
def test_a_canonical_document_is_not_touched(path: object) -> None:
    document = parse(path.read_bytes())  # type: ignore[attr-defined]
    found = lower(document)
    assert found.root is document.root
    assert (found.changes, found.refusals) == ((), ())


def test_every_lowering_explains_itself_in_one_sentence() -> None:
    for lowering in LOWERINGS.values():
        assert lowering.sentence.endswith(".")
        assert ". " not in lowering.sentence
        assert lowering.before
        assert lowering.after


def test_a_lowered_document_is_canonical() -> None:
    text = with_step('tool: { kind: noop, result: { n: 1 } }\nvars: { n: "{{ result.n }}" }\nretry: 2')
    document = parse(text)
    once = lower(document)
    twice = lower(type(document)(document.source, once.root, ()))
    assert once.changes
    assert twice.root is once.root
    assert twice.changes == ()


def test_a_mistake_in_a_rewritten_template_is_shown_in_the_text() -> None:
    text = with_step('tool: { kind: noop }\nvars:\n  a: "{{ response.n | nothing }}"')
    (found,) = [one for one in validate(text, "a.yaml", KINDS) if one.severity == "error"]
    line = text.splitlines()[found.line - 1]
    assert line[found.column - 1 :].startswith("nothing")


def test_every_character_of_a_rewritten_text_has_a_place_in_the_source() -> None:
    text = with_step('tool: { kind: noop }\nvars:\n  a: "x {{ response.n + error.code }} y"')
    subject = CheckContext(parse(text), KINDS)
    (step,) = subject.playbook.workflow
    (written,) = step.sets
    node = written.value.at
    assert isinstance(node, Rewritten)
    places = [locate(subject.source, node, offset) for offset in range(len(node.text) + 1)]
    assert places == sorted(places)
    kept = {node.text.index(part): text.index(part) for part in ("x {{", ".n +", ".code")}
    assert all(places[there] == here for there, here in kept.items())


@pytest.mark.parametrize("body", ["steps: []", "workflow: {}", "workflow: [1, [2], null]", "steps:\n  - 1"])
def test_a_misshapen_document_is_not_lowered(body: str) -> None:
    document = parse(HEAD + body)
    assert lower(document).refusals == ()
    validate(HEAD + body, "a.yaml", KINDS)


@pytest.mark.parametrize("body", ["steps: 3", "steps: { a: 1 }", "steps: [{ name: a, type: noop }]\nworkflow: []"])
def test_steps_that_cannot_be_read_are_one_error(body: str) -> None:
    errors = [one for one in validate(HEAD + body, "a.yaml", KINDS) if "steps" in one.message]
    assert [one.code for one in errors] == ["NOE803"]


@pytest.mark.parametrize(
    "field",
    [
        "case",
        "vars",
        "sink",
        "save",
        "retry",
        "result",
        "when",
        "pass",
        "type",
        "action",
        "call",
        "with",
        "next",
        "loop",
        "tool",
    ],
)
@pytest.mark.parametrize(
    "value", ["null", "3", "[]", "[1, null]", "{}", "{ a: [b] }", "[[{}]]", "text", '"{{ ("', "true"]
)
def test_nonsense_never_raises(field: str, value: str) -> None:
    for body in (
        f"{field}: {value}",
        f"tool: {{ kind: http, {field}: {value} }}",
        f"tool:\n  - a: {{ kind: noop, {field}: {value} }}",
    ):
        text = with_step(body)
        validate(text, "a.yaml", KINDS)


def test_keys_of_new_nodes_are_in_the_text() -> None:
    text = with_step(
        'type: iterator\ncollection: [1]\nelement: n\ntask: { type: noop, result: "{{ _loop.current_index }}" }'
    )
    root = lower(parse(text)).root

    def check(node: object) -> None:
        if isinstance(node, MapNode):
            for entry in node.entries:
                assert 0 <= entry.key.start < entry.key.end <= len(text)
                check(entry.value)
        elif isinstance(node, Scalar) and has_template(node.text):
            assert 0 < node.start < node.end <= len(text)

    check(root)
