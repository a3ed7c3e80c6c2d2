"""The tables of all filters and tests, put together from their files. Tested in tests/unit/expr/test_registry.py."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from noetl.expr import tests
from noetl.expr.filters import choosing, dates, encoding, maps, numbers, patterns, sequences, text
from noetl.expr.registry import Callee, table

_filters: dict[str, Callee] = {}
_tests: dict[str, Callee] = {}
_tests.update(table("test", tests.TESTS, tests.knowing(_filters, _tests)))
_filters.update(
    table(
        "filter",
        choosing.choosing(_filters, _tests),
        dates.FILTERS,
        encoding.FILTERS,
        maps.FILTERS,
        numbers.FILTERS,
        patterns.FILTERS,
        sequences.FILTERS,
        text.FILTERS,
    )
)
FILTERS: Final[Mapping[str, Callee]] = MappingProxyType(_filters)
TESTS: Final[Mapping[str, Callee]] = MappingProxyType(_tests)
