"""Short ways to evaluate an expression in a test."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.expr import TemplateError, compile_template


def value_of(expression: str, **scope: Any) -> Any:
    return compile_template("{{ " + expression + " }}").evaluate(scope)


def text_of(source: str, **scope: Any) -> Any:
    return compile_template(source).evaluate(scope)


def error_of(expression: str, **scope: Any) -> TemplateError:
    """The error of an expression that must fail."""
    with pytest.raises(TemplateError) as caught:
        value_of(expression, **scope)
    return caught.value
