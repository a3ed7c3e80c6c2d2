"""Rules about the shape of a playbook: codes NOE1xx."""

from __future__ import annotations

from noetl.dsl.rule import Rule
from noetl.dsl.rules.shape import unknown_key

RULES: tuple[Rule, ...] = (unknown_key.RULE,)
