"""An evaluation fails before it exceeds its budget, which is counted, not timed."""

from __future__ import annotations

import tracemalloc
from threading import Timer
from typing import Any

import pytest

from noetl.expr import Budget, BudgetExceeded, Fuel, TemplateError, TemplateSyntaxError, compile_template
from noetl.expr.runtime.budget import BYTES, OPERATIONS, OPERATIONS_PER_MS
from tests.unit.expr.runtime.bombs import DEPTHS, LONG, SIZES, STEPS

DATA: dict[str, Any] = {"n": 7, "big_text": "x" * 100_000, "big_list": ["x"] * 20_000, "other_list": ["x"] * 20_000}


def refused(source: str, budget: Budget) -> int:
    """Evaluate what must be refused; the most memory that it took meanwhile."""
    template = compile_template(source)
    tracemalloc.start()
    try:
        with pytest.raises(TemplateError) as caught:
            template.evaluate(DATA, budget=budget)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert caught.value.message
    return peak


@pytest.mark.parametrize("source", SIZES, ids=lambda source: source[:60])
def test_a_size_is_refused_before_it_is_paid_for(source: str) -> None:
    # Each asks for far more than that; a few whole budgets is what making the operands may take.
    assert refused(source, Budget()) < 10 * BYTES


@pytest.mark.parametrize("source", STEPS, ids=lambda source: source[-60:])
def test_many_steps_are_counted(source: str) -> None:
    budget = Budget(operations=100_000, bytes=2_000_000)
    assert refused(source, budget) < 10 * BYTES
    assert budget.operations_used == budget.operations_limit or budget.bytes_used == budget.bytes_limit


@pytest.mark.parametrize("source", DEPTHS, ids=lambda source: source[:30])
def test_a_depth_is_refused_when_the_template_is_compiled(source: str) -> None:
    with pytest.raises(TemplateSyntaxError) as caught:
        compile_template(source)
    assert caught.value.message
    assert caught.value.offset is not None
    assert 0 <= caught.value.offset <= len(source)


@pytest.mark.parametrize("source", LONG, ids=lambda source: source[:30])
def test_what_is_only_long_works(source: str) -> None:
    value = compile_template(source).evaluate(DATA)
    assert value is not None


def test_the_same_evaluation_draws_the_same() -> None:
    template = compile_template("{% for i in range(50) %}{{ i | string | center(9) }}{% endfor %}")
    first, second = Budget(), Budget()
    template.evaluate({}, budget=first)
    template.evaluate({}, budget=second)
    assert first.operations_used == second.operations_used > 50
    assert first.bytes_used == second.bytes_used > 450


def test_a_loop_draws_in_proportion_to_its_iterations() -> None:
    def drawn(count: int) -> int:
        budget = Budget()
        compile_template("{% for i in range(count) %}{{ i }}{% endfor %}").evaluate({"count": count}, budget=budget)
        return budget.operations_used

    assert drawn(2_000) - drawn(1_000) == drawn(1_000) - drawn(0)


@pytest.mark.parametrize("source", ["{{ n == 7 }}", "{{ n + 1 }}", "x{{ n }}"])
def test_even_a_simple_template_draws(source: str) -> None:
    budget = Budget()
    compile_template(source).evaluate(DATA, budget=budget)
    assert budget.operations_used > 0


def test_a_small_budget_is_kept() -> None:
    template = compile_template("{{ range(100) | sum }}")
    assert template.evaluate({}, budget=Budget(operations=1_000)) == 4950
    with pytest.raises(BudgetExceeded, match="operations"):
        template.evaluate({}, budget=Budget(operations=50))
    with pytest.raises(BudgetExceeded, match="bytes"):
        template.evaluate({}, budget=Budget(bytes=100))


def test_a_light_template_keeps_a_budget_too() -> None:
    template = compile_template("{{ n == 1 or n == 2 or n == 7 }}")
    assert template.evaluate(DATA, budget=Budget(operations=100)) is True
    with pytest.raises(BudgetExceeded):
        template.evaluate(DATA, budget=Budget(operations=1))


def test_evaluations_can_share_a_budget() -> None:
    template, budget = compile_template("{{ range(100) | sum }}"), Budget(operations=700)
    assert template.evaluate({}, budget=budget) == template.evaluate({}, budget=budget) == 4950
    with pytest.raises(BudgetExceeded):
        template.evaluate({}, budget=budget)


def test_a_time_limit_maps_to_operations_at_a_fixed_rate() -> None:
    assert Fuel().budget(50).operations_limit == 50 * OPERATIONS_PER_MS
    assert Fuel().budget(0).operations_limit == 1
    assert Fuel().budget(10**9).operations_limit == Fuel().budget(float("inf")).operations_limit == 5 * OPERATIONS


def test_the_evaluations_of_a_decision_share_its_fuel() -> None:
    template, fuel = compile_template("{{ range(1000) | sum }}"), Fuel(10_000)
    for _ in range(3):
        template.evaluate({}, budget=fuel.budget())
    with pytest.raises(BudgetExceeded, match="operations that one evaluation may use"):
        template.evaluate({}, budget=fuel.budget())
    with pytest.raises(BudgetExceeded, match="more than 10,000 operations together"):
        fuel.budget()


def test_another_thread_ends_an_evaluation() -> None:
    budget = Budget(10**12, 10**12)
    thread = Timer(0.2, budget.drain)
    thread.start()
    with pytest.raises(BudgetExceeded):
        compile_template(
            "{% for o in range(9999) %}{% for k in range(9999) %}{{ k }}{% endfor %}{% endfor %}"
        ).evaluate({}, budget=budget)
    thread.join()


def test_large_data_passes_through_for_nothing() -> None:
    data = {"rows": [{"id": index, "text": "x" * 100} for index in range(100_000)]}
    assert compile_template("{{ rows }}").evaluate(data) is data["rows"]
    assert compile_template("{{ rows | default([]) }}").evaluate(data) is data["rows"]
    assert compile_template("{{ rows[99999].id }}").evaluate(data) == 99999
