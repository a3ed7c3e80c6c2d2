"""Templates in test files. Tested in tests/unit/testing/test_cases.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noetl.engine.plan.plan import template
from noetl.engine.state.writes import plain
from noetl.expr import TemplateError, first_undefined


class TemplateTroubleError(Exception):
    """A template of a test file cannot be rendered."""


def rendered(data: Any, names: Mapping[str, Any]) -> Any:
    """Render every template of a value. Raises TemplateTroubleError."""
    if isinstance(data, str):
        compiled = template(data)
        if compiled is None:
            return data
        try:
            value = compiled.evaluate(names)
        except TemplateError as error:
            raise TemplateTroubleError(f"`{data}`: {error.message}") from None
        missing = first_undefined(value)
        if missing is not None:
            raise TemplateTroubleError(f"`{data}` is undefined; known names: {', '.join(sorted(names))}")
        return plain(value)
    if isinstance(data, Mapping):
        return {key: rendered(value, names) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [rendered(value, names) for value in data]
    return data


def holds(condition: str, names: Mapping[str, Any]) -> bool:
    """Whether a condition is true. Raises TemplateTroubleError."""
    compiled = template(condition)
    if compiled is None:
        raise TemplateTroubleError(f"`{condition}` is not a template; write it in braces: `{{{{ … }}}}`")
    try:
        return compiled.test(names)
    except TemplateError as error:
        raise TemplateTroubleError(f"`{condition}`: {error.message}") from None
