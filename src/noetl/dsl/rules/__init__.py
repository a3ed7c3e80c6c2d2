"""Every rule of the checker, one file each, grouped and ordered by code."""

from __future__ import annotations

from noetl.dsl.checking.rule import Rule
from noetl.dsl.rules import dialects, graph, names, reading, shape, templates, tools

RULES: tuple[Rule, ...] = (
    *reading.RULES,
    *shape.RULES,
    *names.RULES,
    *templates.RULES,
    *graph.RULES,
    *tools.RULES,
    *dialects.RULES,
)
BY_CODE: dict[str, Rule] = {rule.code: rule for rule in RULES}

__all__ = ["BY_CODE", "RULES"]
