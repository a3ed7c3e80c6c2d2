"""The grammar's word about a place in a document."""

from __future__ import annotations

import pytest

from noetl.authoring.language.grammar_at import Spot, spot_at
from noetl.dsl.grammar.types import Choice, LevelOf
from tests.unit.authoring.editing import HEAD, typed


def spot(text: str) -> Spot:
    reading, offset = typed(text)
    found = spot_at(reading.subject.document.root, reading.subject.kinds, offset)
    assert found is not None
    return found


STEP = f"{HEAD}  - step: store\n"


@pytest.mark.parametrize(
    ("text", "level", "field", "is_key"),
    [
        ("k‸ind: Playbook\n", "playbook", "kind", True),
        ("metadata: { name: x‸ }\n", "metadata", "name", False),
        (f"{STEP}    ne‸xt: fetch\n", "step", "next", True),
        (f"{STEP}    next: fet‸ch\n", "step", "next", False),
        (f"{STEP}    next: [ {{ step: fet‸ch }} ]\n", "arc", "step", False),
        (f"{STEP}    next: {{ arcs: [ {{ st‸ep: fetch }} ] }}\n", "arc", "step", True),
        (f"{STEP}    tool: {{ kind: http, ur‸l: x }}\n", "task", "url", True),
        (f"{STEP}    tool: {{ kind: http, end‸point: x }}\n", "task", "url", True),
        (f"{STEP}    tool: [ {{ a: {{ kind: http, ur‸l: x }} }} ]\n", "task", "url", True),
        (f"{STEP}    tool: {{ kind: http, spec: {{ ur‸l: x }} }}\n", "task_spec", "url", True),
        (
            f"{STEP}    tool: {{ kind: http, spec: {{ policy: {{ rules: [ {{ else: {{ then: {{ d‸o: fail }} }} }} ] }} }} }}\n",
            "task_then",
            "do",
            True,
        ),
        (
            f"{STEP}    tool: {{ kind: http, spec: {{ policy: {{ rules: [ {{ else: {{ d‸o: fail }} }} ] }} }} }}\n",
            "task_then",
            "do",
            True,
        ),
        (HEAD.replace("tidy: { kind", "tidy: { ki‸nd"), "task", "kind", True),
    ],
)
def test_level_and_field(text: str, level: str, field: str, is_key: bool) -> None:
    found = spot(text)
    assert (found.level_name, found.field and found.field.name, found.is_key) == (level, field, is_key)


def test_the_keys_of_free_maps_have_no_level_but_a_path() -> None:
    found = spot(HEAD.replace("nested: { deep", "nested: { de‸ep"))
    assert found.level is None
    assert found.path == ("workload", "nested", "deep")


def test_a_label_without_a_task_is_going_to_have_one() -> None:
    found = spot(f"{STEP}    tool:\n      - new:\n          ki‸nd\n")
    assert found.type == LevelOf("task")


def test_values_keep_every_alternative() -> None:
    found = spot(f"{STEP}    spec: {{ join: a‸ll }}\n")
    assert any(isinstance(option, Choice) for option in getattr(found.type, "options", ()))


def test_maps_inside_of_a_tools_input_have_their_own_level() -> None:
    found = spot(f"{STEP}    tool: {{ kind: python, script: {{ uri: x, source: {{ ty‸pe: file }} }} }}\n")
    assert found.field is not None
    assert found.field.name == "type"


def test_outside_of_the_document_there_is_nothing() -> None:
    reading, _ = typed("‸")
    assert spot_at(reading.subject.document.root, reading.subject.kinds, 0) is None
