"""Loops of older dialects: their fields, and the steps of `type: iterator`."""

from noetl.dsl.dialects.lowering.loops.fields import OLDER, lower_loop
from noetl.dsl.dialects.lowering.loops.iterators import iterator_key, lower_iterator

__all__ = ["OLDER", "iterator_key", "lower_iterator", "lower_loop"]
