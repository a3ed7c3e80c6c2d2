"""Templates in the fields of triggers: their syntax, and the names that they read.

Tested in tests/unit/triggers/test_webhook.py and test_ended.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noetl.expr import TemplateSyntaxError, compile_template
from noetl.schedules.spec import Problem


def check_templates(field: str, data: Any, roots: Sequence[str], what: str) -> None:
    """Check all templates of a field. Raises Problem; `what` has the names `roots`."""
    for place, text in _texts(data, field):
        try:
            template = compile_template(text)
        except TemplateSyntaxError as error:
            raise Problem(place, f"The template cannot be read: {error.message}", error.fix or "Correct it.") from None
        for read in template.reads:
            if read.path[0] not in roots:
                fix = f"Templates here read {', '.join(f'`{name}`' for name in roots)}."
                raise Problem(place, f"{what} has no `{read.path[0]}`.", fix)


def _texts(data: Any, field: str) -> Iterator[tuple[str, str]]:
    if isinstance(data, str):
        yield field, data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from _texts(value, f"{field}.{key}")
    elif isinstance(data, list | tuple):
        for value in data:
            yield from _texts(value, field)
