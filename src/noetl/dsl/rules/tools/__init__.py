"""Rules about tools: codes NOE5xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule

RULES: tuple[Rule, ...] = ()
