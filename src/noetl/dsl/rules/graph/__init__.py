"""Rules about the net: codes NOE4xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule

RULES: tuple[Rule, ...] = ()
