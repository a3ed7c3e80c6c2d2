"""Routes of older dialects: `case`, and the `then` and `else` of arcs."""

from noetl.dsl.dialects.lowering.routing.arcs import has_older_arcs, is_arc, lower_arcs
from noetl.dsl.dialects.lowering.routing.cases import lower_case

__all__ = ["has_older_arcs", "is_arc", "lower_arcs", "lower_case"]
