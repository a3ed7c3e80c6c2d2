"""Rules about the shape of a playbook: codes NOE1xx."""

from noetl.dsl.rules.shape.table import RULES

__all__ = ["RULES"]
