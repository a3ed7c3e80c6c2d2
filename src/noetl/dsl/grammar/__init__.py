"""The grammar: every field by level, source of checks, schema and docs."""

from __future__ import annotations

from noetl.dsl.grammar.document import DOCUMENT_LEVELS
from noetl.dsl.grammar.layered_settings import LAYERED_LEVELS
from noetl.dsl.grammar.step import ROUTE_LEVELS, STEP_LEVELS
from noetl.dsl.grammar.subscription import SUBSCRIPTION_LEVELS
from noetl.dsl.grammar.task import TASK_LEVELS, cursor_level, task_level, task_spec_level
from noetl.dsl.grammar.types import Level

LEVELS: dict[str, Level] = {
    level.name: level
    for level in (
        *DOCUMENT_LEVELS, *SUBSCRIPTION_LEVELS, *STEP_LEVELS, *TASK_LEVELS, *ROUTE_LEVELS, *LAYERED_LEVELS,
    )
}  # fmt: skip

__all__ = ["LEVELS", "cursor_level", "task_level", "task_spec_level"]
