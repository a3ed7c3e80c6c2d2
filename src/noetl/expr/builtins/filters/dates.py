"""Filters on dates; without a time zone: UTC.

Tested in tests/unit/expr/builtins/test_filters.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from noetl.expr.errors import EvaluationError
from noetl.expr.runtime.budget import Context
from noetl.expr.runtime.formatting import format_date
from noetl.expr.runtime.undefined import Undefined
from noetl.expr.runtime.value_types import kind_of

_LONGEST: Final = 100
_PARSE: Final = 10_000  # Python compiles a format to a regular expression


def to_datetime(context: Context, value: Any, format: str | None = None) -> datetime:
    """Parse a date: ISO 8601, a string in `format`, or seconds since 1970."""
    if isinstance(value, Undefined):
        value.fail()
    context.spend(30 if format is None else _PARSE)
    try:
        moment = _moment(value, format)
    except (ValueError, OverflowError, OSError, re.error) as error:
        fix = None if format else "pass a format such as `'%d.%m.%Y'`"
        raise EvaluationError(f"not a date: {error}", None, fix) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _moment(value: Any, format: str | None) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str):
        raise EvaluationError(f"a date is parsed from a string or a number, not from {kind_of(value)}")
    if len(value) > _LONGEST or (format is not None and len(format) > _LONGEST):
        raise EvaluationError(f"a date must be at most {_LONGEST} characters")
    if format is not None:
        return datetime.strptime(value, format)  # noqa: DTZ007 (the zone is set by the caller)
    return datetime.fromisoformat(value.strip())


def strftime(context: Context, value: Any, format: str = "%Y-%m-%dT%H:%M:%S%z") -> str:
    """Format a date (or what `to_datetime` parses) by a pattern such as `%Y-%m-%d`."""
    if not isinstance(format, str):
        raise EvaluationError(f"the pattern must be a string, not {kind_of(format)}")
    context.spend(30 + len(format))
    context.produce(len(format) * 8)
    return format_date(value if isinstance(value, date) else to_datetime(context, value), format)


def timestamp(context: Context, value: Any) -> float:
    """Convert a date to seconds since 1970."""
    return to_datetime(context, value).timestamp()


def isoformat(context: Context, value: Any) -> str:
    """Format a date in ISO 8601."""
    return to_datetime(context, value).isoformat()


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "isoformat": isoformat,
    "strftime": strftime,
    "timestamp": timestamp,
    "to_datetime": to_datetime,
}
