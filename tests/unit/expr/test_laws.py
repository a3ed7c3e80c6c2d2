"""Laws that hold for every template and all data."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from noetl.expr import Budget, Read, Template, TemplateError, TemplateSyntaxError, compile_template, dotted
from tests.unit.expr.plain import is_plain
from tests.unit.expr.strategies import garbage, lone, scopes, templates

SETTINGS = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FAILED = object()


def outcome(template: Template, scope: dict[str, Any]) -> Any:
    try:
        return template.evaluate(scope, budget=Budget(50_000, 500_000))
    except TemplateError:
        return FAILED


def compiled(source: str) -> tuple[Template | None, TemplateSyntaxError | None]:
    try:
        return compile_template(source), None
    except TemplateSyntaxError as error:
        return None, error


@SETTINGS
@given(templates, scopes)
def test_evaluation_gives_plain_data_or_fails_as_a_template(source: str, scope: dict[str, Any]) -> None:
    before = deepcopy(scope)
    value = outcome(compile_template(source), scope)
    assert value is FAILED or is_plain(value)
    assert scope == before


@SETTINGS
@given(st.one_of(garbage, st.text(max_size=30)))
@example("{{ a if")
@example("{{")
@example("{%")
@example("{% set %}")
@example("{{ '\\N{x}' }}")
def test_any_text_compiles_or_fails_with_a_place(source: str) -> None:
    template, error = compiled(source)
    if template is None:
        assert error is not None
        assert error.message
        assert 0 <= (-1 if error.offset is None else error.offset) <= len(source)
        return
    outcome(template, {"a": {"k": [1, "x"]}})
    for read in template.reads:
        assert source[read.offset :].startswith(str(read.path[0]))
    for problem in template.problems:
        assert 0 <= problem.offset < len(source)


@SETTINGS
@given(templates, scopes)
def test_evaluation_is_deterministic(source: str, scope: dict[str, Any]) -> None:
    def drawn(template: Template) -> tuple[str, int, int]:
        budget = Budget(50_000, 500_000)
        try:
            found = repr(template.evaluate(scope, budget=budget))
        except TemplateError as error:
            found = f"{type(error).__name__}: {error.message} at {error.offset}"
        return found, budget.operations_used, budget.bytes_used

    assert drawn(compile_template(source)) == drawn(Template(source))


def covers(read: Read, path: str) -> bool:
    name = dotted(read.path)
    return path == name or path.startswith((f"{name}.", f"{name}["))


@SETTINGS
@given(templates, scopes)
def test_what_is_read_was_known_to_be(source: str, scope: dict[str, Any]) -> None:
    template = compile_template(source)
    try:
        value, trace = template.evaluate_traced(scope, budget=Budget(50_000, 500_000))
    except TemplateError:
        return
    for path in trace:
        assert any(covers(read, path) for read in template.reads), path
    assert repr(value) == repr(outcome(template, scope))


@SETTINGS
@given(templates, scopes, scopes)
def test_what_is_not_read_does_not_matter(source: str, scope: dict[str, Any], other: dict[str, Any]) -> None:
    template = compile_template(source)
    roots = {read.path[0] for read in template.reads}
    changed = {**{key: value for key, value in other.items() if key not in roots}}
    changed |= {key: value for key, value in scope.items() if key in roots}
    value = outcome(template, scope)
    assert value is not FAILED or outcome(template, changed) is FAILED
    assert repr(outcome(template, changed)) == repr(value)


def dotted_values(value: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
    found = {dotted(path): value} if path else {}
    if isinstance(value, dict):
        for key, item in value.items():
            found |= dotted_values(item, (*path, key))
    return found


@SETTINGS
@given(lone, scopes, st.data())
def test_a_decision_agrees_with_every_evaluation(source: str, scope: dict[str, Any], data: st.DataObject) -> None:
    template = compile_template(source)
    every = dotted_values(scope, ())
    known = {
        path: every[path] for path in data.draw(st.sets(st.sampled_from(sorted(every) or ["none"]))) if path in every
    }
    decision = template.decide(known)
    value = outcome(template, scope)
    assume(decision is not None and value is not FAILED)
    assert bool(value) is decision


@SETTINGS
@given(templates, scopes)
def test_a_constant_template_needs_no_data(source: str, scope: dict[str, Any]) -> None:
    template = compile_template(source)
    assume(template.constant)
    assert repr(outcome(template, scope)) == repr(outcome(template, {}))
