"""The constants that a path is compared with."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.expr import compile_template


@pytest.mark.parametrize(
    ("source", "path", "values"),
    [
        ("{{ event.name == 'a' }}", "event.name", {"a"}),
        ("{{ 'a' != event.name }}", "event.name", {"a"}),
        ("{{ event.name in ['a', 'b'] or event.name not in ('c',) }}", "event.name", {"a", "b", "c"}),
        ("{{ event.name == 'a' and (x or not event.name == 'b') }}", "event.name", {"a", "b"}),
        ("{{ event.name is eq('a') or event.name is in ['b'] }}", "event.name", {"a", "b"}),
        ("{{ event.name == x or event.name > 5 }}", "event.name", set()),
        ("{{ event.step == 'a' }}", "event.name", set()),
        ("{{ event['name'] == 'a' }}", "event.name", {"a"}),
        (
            "{% if event.name == 'a' %}{% for i in b if event.name == 'c' %}x{% endfor %}{% endif %}",
            "event.name",
            {"a", "c"},
        ),
        ("{{ (event.name == 'a') | ternary(event.name == 'b', 1) }}", "event.name", {"a", "b"}),
        ("{{ a[0] == 1 }}", "a[0]", {1}),
        ("plain", "event.name", set()),
    ],
)
def test_values(source: str, path: str, values: set[Any]) -> None:
    assert compile_template(source).values_compared(path) == frozenset(values)
