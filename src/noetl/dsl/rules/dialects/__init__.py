"""Rules about older spellings: codes NOE8xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule

RULES: tuple[Rule, ...] = ()
