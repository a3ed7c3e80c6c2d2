"""The kinds of values that there are, in types and in words.

The tuples of types are written once: checking against one costs a third of checking against `list | tuple`, and
evaluations do little else. Tested in tests/unit/expr/test_operators.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Any, Final

from noetl.expr.undefined import Undefined

NUMBERS: Final = (int, float)
LISTS: Final = (list, tuple)
CONTAINERS: Final = (list, tuple, dict)
TIMES: Final = (datetime, date, timedelta)

_WORDS: Final[tuple[tuple[Any, str], ...]] = (
    (bool, "a boolean"),
    (NUMBERS, "a number"),
    (str, "a text"),
    (LISTS, "a list"),
    (Mapping, "a map"),
    (date, "a date"),
    (timedelta, "a duration"),
    (Undefined, "an undefined value"),
    (type(None), "null"),
)


def kind_of(value: Any) -> str:
    """What people call a value of this type."""
    return next((word for types, word in _WORDS if isinstance(value, types)), "a value of another kind")
