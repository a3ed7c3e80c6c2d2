"""Tables of all filters and tests.

Tested in tests/unit/expr/builtins/test_registry.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from noetl.expr.builtins import tests
from noetl.expr.builtins.filters import dates, encoding, maps, numbers, patterns, selection, sequences, text
from noetl.expr.builtins.registry import Callee, table

_filters: dict[str, Callee] = {}
_tests: dict[str, Callee] = {}
_TOPICS: Final = (dates, encoding, maps, numbers, patterns, sequences, text)
_tests.update(table("test", tests.TESTS, tests.lookup_tests(_filters, _tests)))
_filters.update(table("filter", selection.item_filters(_filters, _tests), *(topic.FILTERS for topic in _TOPICS)))
FILTERS: Final[Mapping[str, Callee]] = MappingProxyType(_filters)
TESTS: Final[Mapping[str, Callee]] = MappingProxyType(_tests)
