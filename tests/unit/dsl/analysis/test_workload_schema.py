"""Schemas of a workload: patterns on RE2, no other schema is loaded, bounded work."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.dsl.analysis.workload_schema import SchemaProblem, misfits, pattern_problem


def of_a(schema: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"a": schema}}


def ladder(word: str, rungs: int = 60) -> dict[str, Any]:
    """Each definition applies the next one twice: 2⁶⁰ checks."""
    steps = {f"d{n}": {word: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(rungs)}
    return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{rungs}": {"type": "string"}}}


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (ladder("allOf"), {}, "takes too long"),
        (ladder("anyOf"), {}, "takes too long"),
        (ladder("oneOf"), {}, "takes too long"),
        ({"$ref": "#"}, {}, "cannot be checked"),
        ({"$ref": "#/$defs/none"}, {}, "cannot be checked"),
        ({"$ref": "http://127.0.0.1:1/a.json"}, {}, "Unresolvable"),
        ({"$ref": "file:///etc/passwd"}, {}, "Unresolvable"),
        ({"$id": "http://127.0.0.1:1/", "$ref": "a.json"}, {}, "Unresolvable"),
        ({"properties": {"a": {"$ref": "#"}}}, nested(400), "cannot be checked|takes too long"),
        ({"unevaluatedProperties": False}, {}, "does not check"),
        (of_a({"pattern": "(?=a)"}), {"a": "a"}, "is no JSON Schema"),
        ({"patternProperties": {"(a)\\1": {}}}, {"a": 1}, "cannot be used|no JSON Schema"),
        (of_a({"multipleOf": 0.1}), {"a": 10**400}, "cannot be checked"),
        (of_a({"multipleOf": 0.1}), {"a": float("nan")}, "cannot be checked"),
        (of_a({"items": {"enum": list(range(5_000))}}), {"a": [7] * 10_000}, "takes too long"),
        ({"properties": {f"p{n}": {} for n in range(3_000)}}, {}, "more than 2,000"),
        ({"type": "strin"}, {}, "is no JSON Schema"),
    ],
)
def test_what_cannot_be_checked_is_refused(schema: dict[str, Any], value: Any, why: str) -> None:
    with pytest.raises(SchemaProblem, match=why):
        misfits(schema, value)


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        (of_a({"pattern": "^(a+)+$"}), {"a": "a" * 5_000 + "b"}, False),
        (of_a({"pattern": "^(a+)+$"}), {"a": "a" * 5_000}, True),
        (of_a({"pattern": "b"}), {"a": "abc"}, True),
        (of_a({"pattern": "b"}), {"a": 1}, True),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"n1": 1, "x": ""}, True),
        ({"patternProperties": {"^n": {"type": "integer"}}}, {"n1": ""}, False),
        ({"patternProperties": {"^n": {}}, "additionalProperties": False}, {"n1": 1, "x": 1}, False),
        ({"properties": {"b": {}}, "additionalProperties": {"type": "integer"}}, {"a": 1, "b": ""}, True),
        ({"properties": {"b": {}}, "additionalProperties": {"type": "integer"}}, {"a": ""}, False),
        (of_a({"uniqueItems": True}), {"a": [{"x": n} for n in range(20_000)]}, True),
        (of_a({"uniqueItems": True}), {"a": [{"x": 1, "y": 2}, {"y": 2, "x": 1.0}]}, False),
        (of_a({"uniqueItems": True}), {"a": [1, True, "1", [1], {"1": 1}, None, "None", 0, False]}, True),
        (of_a({"$ref": "#/$defs/n"}) | {"$defs": {"n": {"type": "integer"}}}, {"a": "x"}, False),
        ({"$dynamicAnchor": "n", **of_a({"$dynamicRef": "#n"}), "required": ["a"]}, {"a": {"b": 1}}, False),
        (of_a({"items": {"properties": {"x": {"type": "integer"}}}}), {"a": [{"x": 1}] * 10_000}, True),
        (of_a({"format": "regex"}), {"a": "(" * 5_000}, False),
        (False, {}, False),
    ],
)  # fmt: skip
def test_a_value_is_checked(schema: dict[str, Any], value: Any, fits: bool) -> None:
    assert (misfits(schema, value) == []) is fits


def test_messages_are_short_and_in_order_of_their_places() -> None:
    found = misfits({"properties": {"b": {"type": "string"}, "a": {"type": "string"}}}, {"a": [1] * 900, "b": 1})
    assert [place for place, _ in found] == ["$.a", "$.b"]
    assert len(found[0][1]) <= 501


def test_a_pattern_of_re2_is_needed() -> None:
    assert pattern_problem("^[A-Z]-[0-9]+$") is None
    assert pattern_problem("(((a{1000}){1000}){1000})")
    assert pattern_problem("a" * 1_001)
    assert pattern_problem("(?!a)")
