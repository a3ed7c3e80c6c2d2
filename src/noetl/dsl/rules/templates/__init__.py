"""Rules about templates: codes NOE3xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule

RULES: tuple[Rule, ...] = ()
