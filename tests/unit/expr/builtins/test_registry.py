"""Everything that a template can call is described, once, where it is written."""

from __future__ import annotations

import pytest

from noetl.expr import FILTERS, FUNCTIONS, TESTS, Callee
from noetl.expr.builtins.registry import table

EVERYTHING = [*FILTERS.values(), *TESTS.values(), *FUNCTIONS.values()]


@pytest.mark.parametrize("callee", EVERYTHING, ids=lambda callee: f"{callee.kind}-{callee.name}")
def test_each_has_a_summary_and_a_signature(callee: Callee) -> None:
    assert callee.summary.endswith(".")
    assert len(callee.summary) < 140
    assert callee.summary[0].isupper()
    assert callee.name in callee.signature
    assert "context" not in callee.signature


def test_the_filters_that_people_use_are_there() -> None:
    expected = [
        "int", "float", "default", "d", "tojson", "to_json", "fromjson", "from_json", "replace", "length", "count",
        "string", "lower", "upper", "trim", "split", "join", "first", "last", "keys", "values", "items", "b64encode",
        "b64decode", "round", "sum", "min", "max", "unique", "sort", "groupby", "map", "select", "selectattr",
        "reject", "rejectattr", "list", "dictsort", "indent", "title", "capitalize", "abs", "batch", "slice",
        "urlencode", "regex_replace", "regex_search", "regex_match", "regex_findall", "to_datetime", "strftime",
        "timestamp", "hash", "bool", "center", "e", "escape", "forceescape", "filesizeformat", "flatten", "format",
        "reverse", "safe", "raw", "truncate", "union", "intersect", "difference", "wordcount", "wordwrap", "zip",
        "combine", "ternary", "quote",
    ]  # fmt: skip
    assert set(expected) <= set(FILTERS)
    assert not {"attr", "random", "xmlattr", "urlize", "pprint"} & set(FILTERS)


def test_the_tests_that_people_use_are_there() -> None:
    expected = [
        "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
        "iterable", "even", "odd", "divisibleby", "eq", "ne", "gt", "ge", "lt", "le", "in", "equalto", "sameas",
        "true", "false", "lower", "upper", "callable", "contains", "match", "search", "filter", "test", "==", "!=",
        ">", ">=", "<", "<=",
    ]  # fmt: skip
    assert set(expected) <= set(TESTS)


@pytest.mark.parametrize(
    ("callee", "signature"),
    [
        (FILTERS["round"], "value | round(precision=0, method='common')"),
        (FILTERS["upper"], "value | upper"),
        (FILTERS["default"], "value | default(default_value='', boolean=false)"),
        (FILTERS["regex_search"], "value | regex_search(pattern, *groups, ignorecase=false, multiline=false)"),
        (TESTS["divisibleby"], "value is divisibleby(num)"),
        (TESTS["defined"], "value is defined"),
        (FUNCTIONS["range"], "range(start, stop=none, step=1)"),
        (FUNCTIONS["now"], "now()"),
        (FUNCTIONS["dict"], "dict(mapping=none, **items)"),
    ],
)
def test_signatures_are_written_as_in_a_template(callee: Callee, signature: str) -> None:
    assert callee.signature == signature


def test_tables_cannot_be_changed_and_have_no_doubles() -> None:
    with pytest.raises(TypeError):
        FILTERS["x"] = FILTERS["upper"]  # type: ignore[index]
    with pytest.raises(ValueError, match="twice"):
        table("filter", {"a": len}, {"a": len})


def test_aliases_do_the_same() -> None:
    for alias, name in {
        "d": "default",
        "count": "length",
        "e": "escape",
        "to_json": "tojson",
        "from_json": "fromjson",
    }.items():
        assert FILTERS[alias].call is FILTERS[name].call
