"""Evaluations of a decision: a small budget here, and answers from elsewhere."""

from __future__ import annotations

import pickle

import pytest

from noetl.engine.decision.evaluations import Evaluations, Heavy
from noetl.engine.decision.needs_load import NeedsLoad
from noetl.engine.handlers.decide import Decision, decide
from noetl.expr import BudgetExceeded, EvaluationError, TemplateError, compile_template
from tests.unit.engine.given import book, done, given

SUM = "{{ range(1000) | sum }}"


def value(evaluations: Evaluations, template: str) -> object:
    evaluate = compile_template(template).evaluate
    return evaluations.run(template, None, lambda budget: evaluate({}, budget=budget))


def test_a_heavy_template_stops_a_decision_that_may_evaluate_a_little() -> None:
    assert value(Evaluations(10_000), SUM) == 499_500
    with pytest.raises(Heavy) as stopped:
        value(Evaluations(100), SUM)
    assert stopped.value.template == SUM


def test_templates_of_a_decision_share_what_may_be_evaluated_here() -> None:
    evaluations = Evaluations(5_000)
    value(evaluations, SUM)
    with pytest.raises(Heavy):
        [value(evaluations, SUM) for _ in range(10)]


def test_a_template_with_a_mistake_is_not_heavy() -> None:
    with pytest.raises(EvaluationError):
        value(Evaluations(10_000), "{{ 1 // (range(1) | sum) }}")


def test_a_template_beyond_its_own_budget_is_heavy_here_and_an_error_elsewhere() -> None:
    endless = "{% for a in range(9999) %}{% for b in range(9999) %}{{ b }}{% endfor %}{% endfor %}"
    with pytest.raises(Heavy):
        value(Evaluations(10_000), endless)
    with pytest.raises(BudgetExceeded):
        value(Evaluations(), endless)


def test_kept_answers_are_given_in_order_and_nothing_is_evaluated() -> None:
    templates = [SUM, "{{ range(3) | sum }}", "{{ nothing() }}", SUM]
    first = Evaluations(keeps=True)
    for template in templates:
        try:
            value(first, template)
        except TemplateError:
            assert template == "{{ nothing() }}"
    assert [source for source, _ in first.answers] == templates
    known = Evaluations(1, first.answers)
    assert [value(known, template) for template in templates[:2]] == [499_500, 3]
    with pytest.raises(TemplateError, match="nothing"):
        value(known, templates[2])
    with pytest.raises(Heavy):  # another template than when they were kept
        value(known, "{{ 1 }}")


ROUTED = book("""
- step: a
  tool: {kind: noop}
  set: {ctx.rows: "{{ range(100) | list }}", ctx.none: "{{ nothing | default('x') }}"}
  next:
    arcs:
      - {step: b, when: "{{ nope.x > 1 }}"}
      - {step: b, when: "{{ ctx.rows | sum > 10 and outcome.status == 'ok' }}", args: {id: "{{ gen_uuid() }}", at: "{{ now() }}"}}
- step: b
  loop: {in: "{{ ctx.rows }}", iterator: row}
  tool: {kind: noop}
""")


def test_a_decision_with_answers_equals_the_decision_itself() -> None:
    here = given(ROUTED)
    message = done("a#1")
    assert decide(here.plan, here.state, message, here.at, {}, Evaluations(10)) == NeedsLoad(
        touched=True, template="{{ range(100) | list }}"
    )
    apart = Evaluations(keeps=True)
    whole = decide(here.plan, here.state, message, here.at, {}, apart)
    answers = pickle.loads(pickle.dumps(apart.answers))  # they come from another process
    assert len(answers) >= 6
    again = decide(here.plan, here.state, message, here.at, {}, Evaluations(1, answers))
    assert isinstance(whole, Decision)
    assert again == whole
