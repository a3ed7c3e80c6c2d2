"""Check that a value is plain data."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from noetl.expr import Undefined

LEAVES = {str, int, float, bool, type(None), datetime, date, timedelta, Undefined}


def is_plain(value: Any) -> bool:
    """Whether everything reachable in `value` is plain data, of exactly those types."""
    if type(value) is list:
        return all(is_plain(item) for item in value)
    if type(value) is dict:
        return all(is_plain(key) and is_plain(item) for key, item in value.items())
    return type(value) in LEAVES
