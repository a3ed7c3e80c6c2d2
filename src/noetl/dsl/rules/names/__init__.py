"""Rules about names: codes NOE2xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule
from noetl.dsl.rules.names import unknown_arc_target

RULES: tuple[Rule, ...] = (unknown_arc_target.RULE,)
