"""Rules about reading the file: codes NOE0xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule

RULES: tuple[Rule, ...] = ()
