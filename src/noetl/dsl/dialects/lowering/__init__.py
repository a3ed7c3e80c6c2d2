"""Lower the older dialects to the canonical form."""

from noetl.dsl.dialects.lowering.document import Lowered, lower
from noetl.dsl.dialects.lowering.draft import Change, Refusal
from noetl.dsl.dialects.lowering.lowerings import LOWERINGS, Lowering

__all__ = ["LOWERINGS", "Change", "Lowered", "Lowering", "Refusal", "lower"]
