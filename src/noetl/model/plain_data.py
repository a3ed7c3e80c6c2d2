"""What the log can hold: JSON data that every store writes and reads unchanged.

Text must be valid Unicode, numbers must be finite and of at most 4,300 digits, and nesting is limited. A value that enters
the log is checked where it comes from: a template, a tool, or a request. Tested in tests/unit/model/test_plain_data.py.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

MOST_DEPTH: Final = 200
_MOST_BITS: Final = 14_280  # of a number of 4,300 digits: Python writes and reads no more
_NESTED: Final = (dict, list, tuple)
_TOO_DEEP: Final = f"it is nested deeper than {MOST_DEPTH} levels"


def scalar_problem(value: Any) -> str | None:
    """Return why the log cannot hold a text or a number; None if it can."""
    if isinstance(value, str):
        if value.isascii():
            return None
        try:
            value.encode()
        except UnicodeEncodeError:
            return "it is text with half of a surrogate pair, which is no character"
    elif isinstance(value, float):
        return None if isfinite(value) else f"it is {value}, which is no number in JSON"
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return "it is a number of more than 4,300 digits"
    return None


def problem(value: Any) -> str | None:
    """Return why the log cannot hold plain data; None if it can."""
    if is_deeper(value, MOST_DEPTH):
        return _TOO_DEEP
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += one
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
        else:
            found = scalar_problem(one)
            if found is not None:
                return found
    return None


def is_deeper(data: Any, most: int) -> bool:
    """Return whether plain data is nested deeper than `most` levels."""
    level = [data] if isinstance(data, _NESTED) else []
    for _ in range(most):
        level = [
            value
            for one in level
            for value in (one.values() if isinstance(one, dict) else one)
            if isinstance(value, _NESTED)
        ]
        if not level:
            return False
    return bool(level)


def repaired(value: Any, depth: int = 0) -> Any:
    """Return data for people that the log can hold; what it cannot is described."""
    if isinstance(value, dict):
        if depth >= MOST_DEPTH:
            return f"({_TOO_DEEP})"
        return {str(repaired(key)): repaired(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return f"({_TOO_DEEP})" if depth >= MOST_DEPTH else [repaired(item, depth + 1) for item in value]
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, bool | int | float):
        found = scalar_problem(value)
        return value if found is None else f"({found})"
    return f"(of type {type(value).__name__})"
