"""Jinja2 and NoETL agree on one corpus, except where the corpus says why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import jinja2
import pytest
from jinja2.nativetypes import NativeEnvironment

from noetl.expr import TemplateError, Undefined, compile_template
from tests.unit.expr import corpus

NATIVE = NativeEnvironment(undefined=jinja2.ChainableUndefined)
TEXT = jinja2.Environment(undefined=jinja2.ChainableUndefined)
# Everything that a template of Jinja2 raises when data does not fit it.
FAILURES = (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError, AssertionError)


def normal(value: Any) -> Any:
    """Convert a value so that types compare: `1`, `1.0` and `true` differ."""
    if isinstance(value, Undefined | jinja2.Undefined):
        return "undefined", None
    if isinstance(value, str):
        return "text", str(value)
    if isinstance(value, float):
        return "float", "nan" if math.isnan(value) else value
    if isinstance(value, Mapping):
        return "map", [(normal(key), normal(item)) for key, item in value.items()]
    if isinstance(value, list | tuple | range | Iterator):
        return "list", [normal(item) for item in value]
    return type(value).__name__, value


def by_jinja2(source: str) -> Any:
    kind = compile_template(source).kind
    environment = NATIVE if kind == "expression" else TEXT
    try:
        return normal(environment.from_string(source).render(corpus.data()))
    except FAILURES:
        return "error"


def by_noetl(source: str) -> Any:
    try:
        return normal(compile_template(source).evaluate(corpus.data()))
    except TemplateError:
        return "error"


@pytest.mark.parametrize("source", corpus.same())
def test_same(source: str) -> None:
    assert by_noetl(source) == by_jinja2(source)


@pytest.mark.parametrize("source", corpus.different())
def test_different(source: str) -> None:
    assert by_noetl(source) != by_jinja2(source), "this is no difference any more: move it to `same`"


def test_the_corpus_is_large_and_has_no_doubles() -> None:
    sources = [*corpus.same(), *corpus.different()]
    assert len(corpus.same()) >= 320
    assert len(set(sources)) == len(sources)
    assert all(reason for reason in corpus.different().values())
