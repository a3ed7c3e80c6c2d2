"""Rules about older spellings: codes NOE8xx."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules.dialects import first_dialect, no_equivalent, second_dialect

RULES: tuple[Rule, ...] = (first_dialect.RULE, second_dialect.RULE, no_equivalent.RULE)
