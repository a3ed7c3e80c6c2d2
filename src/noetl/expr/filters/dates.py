"""Filters on dates. A date without a time zone is taken as UTC. Tested in tests/unit/expr/test_filters.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, Final

from noetl.expr.budget import Context
from noetl.expr.errors import EvaluationError
from noetl.expr.formatting import format_date
from noetl.expr.kinds import kind_of
from noetl.expr.undefined import Undefined

_LONGEST: Final = 200


def to_datetime(_context: Context, value: Any, format: str | None = None) -> datetime:
    """The date that a text (ISO 8601, or by `format`) or a number of seconds since 1970 stands for."""
    if isinstance(value, Undefined):
        value.fail()
    try:
        moment = _moment(value, format)
    except (ValueError, OverflowError, OSError) as error:
        fix = None if format else "give a format such as `'%d.%m.%Y'`"
        raise EvaluationError(f"this is no date: {error}", None, fix) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _moment(value: Any, format: str | None) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    if not isinstance(value, str):
        raise EvaluationError(f"a date is made of a text or a number, not of {kind_of(value)}")
    if len(value) > _LONGEST or (format is not None and len(format) > _LONGEST):
        raise EvaluationError(f"a date may have {_LONGEST} characters at most")
    if format is not None:
        return datetime.strptime(value, format)  # noqa: DTZ007 (the zone is set by the caller)
    return datetime.fromisoformat(value.strip())


def strftime(context: Context, value: Any, format: str = "%Y-%m-%dT%H:%M:%S%z") -> str:
    """The date as text by a pattern such as `%Y-%m-%d`; texts and numbers are read as dates first."""
    if not isinstance(format, str):
        raise EvaluationError(f"the pattern must be a text, not {kind_of(format)}")
    context.produce(len(format) * 8)
    return format_date(value if isinstance(value, date) else to_datetime(context, value), format)


def timestamp(context: Context, value: Any) -> float:
    """The date as a number of seconds since 1970."""
    return to_datetime(context, value).timestamp()


def isoformat(context: Context, value: Any) -> str:
    """The date as text in ISO 8601."""
    return to_datetime(context, value).isoformat()


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "isoformat": isoformat,
    "strftime": strftime,
    "timestamp": timestamp,
    "to_datetime": to_datetime,
}
