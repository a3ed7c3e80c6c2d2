"""Expression language: Jinja2 syntax compiled once into closures over plain data.

    template = compile_template("{{ outcome.status == 'error' }}")
    template.reads                                   # paths it reads, with offsets
    template.problems                                # calls of things that do not exist
    template.test({"outcome": {"status": "ok"}})     # False

A template cannot reach a Python attribute, and every evaluation has a budget. Templates read no clock and no file: the
caller passes in functions whose value depends on the moment. Tested in tests/unit/expr.
"""

from noetl.expr.builtins.functions import FUNCTIONS
from noetl.expr.builtins.registry import Callee
from noetl.expr.builtins.tables import FILTERS, TESTS
from noetl.expr.errors import BudgetExceeded, EvaluationError, TemplateError, TemplateSyntaxError, UndefinedError
from noetl.expr.lowering.problems import Problem
from noetl.expr.lowering.reads import Read
from noetl.expr.names import dotted, nearest
from noetl.expr.partial import UNKNOWN
from noetl.expr.runtime.budget import Budget, Fuel
from noetl.expr.runtime.result_views import Envelope, Result
from noetl.expr.runtime.undefined import Undefined, first_undefined
from noetl.expr.syntax.parser import has_template
from noetl.expr.template import Template, compile_condition, compile_template

__all__ = [
    "FILTERS", "FUNCTIONS", "TESTS", "UNKNOWN", "Budget", "BudgetExceeded", "Callee", "Envelope", "EvaluationError",
    "Fuel",
    "Problem", "Read", "Result", "Template", "TemplateError", "TemplateSyntaxError", "Undefined", "UndefinedError",
    "compile_condition", "compile_template", "dotted", "first_undefined", "has_template", "nearest",
]  # fmt: skip
