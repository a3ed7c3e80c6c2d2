"""The expression language: Jinja2's syntax, compiled once into closures over plain data.

    template = compile_template("{{ outcome.status == 'error' }}")
    template.reads                                   # what it reads, and where
    template.problems                                # what it calls that does not exist
    template.test({"outcome": {"status": "ok"}})     # False

There is no way from a template to a Python attribute, and every evaluation has a budget. Templates read no clock and
no file: what depends on the moment is handed in by the caller. Tested in tests/unit/expr.
"""

from noetl.expr.budget import Budget
from noetl.expr.errors import BudgetExceeded, EvaluationError, TemplateError, TemplateSyntaxError, UndefinedError
from noetl.expr.functions import FUNCTIONS
from noetl.expr.names import dotted, nearest
from noetl.expr.parser import has_template
from noetl.expr.partial import UNKNOWN
from noetl.expr.problems import Problem
from noetl.expr.reads import Read
from noetl.expr.registry import Callee
from noetl.expr.scopes import Envelope, Result
from noetl.expr.tables import FILTERS, TESTS
from noetl.expr.template import Template, compile_condition, compile_template
from noetl.expr.undefined import Undefined, first_undefined

__all__ = [
    "FILTERS", "FUNCTIONS", "TESTS", "UNKNOWN", "Budget", "BudgetExceeded", "Callee", "Envelope", "EvaluationError",
    "Problem", "Read", "Result", "Template", "TemplateError", "TemplateSyntaxError", "Undefined", "UndefinedError",
    "compile_condition", "compile_template", "dotted", "first_undefined", "has_template", "nearest",
]  # fmt: skip
