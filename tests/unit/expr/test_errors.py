"""The errors of templates are one tree."""

from __future__ import annotations

import pytest

from noetl.expr import BudgetExceeded, EvaluationError, TemplateError, TemplateSyntaxError, UndefinedError


@pytest.mark.parametrize("error", [TemplateSyntaxError, EvaluationError, UndefinedError, BudgetExceeded])
def test_one_tree(error: type[TemplateError]) -> None:
    raised = error("what", 5, "fix")
    assert isinstance(raised, TemplateError)
    assert (str(raised), raised.message, raised.offset, raised.fix) == ("what", "what", 5, "fix")


def test_what_goes_wrong_in_an_evaluation_is_an_evaluation_error() -> None:
    assert issubclass(UndefinedError, EvaluationError)
    assert issubclass(BudgetExceeded, EvaluationError)
    assert not issubclass(TemplateSyntaxError, EvaluationError)


def test_the_most_exact_place_is_kept() -> None:
    error = EvaluationError("what")
    error.at(7)
    error.at(3)
    assert error.offset == 7
