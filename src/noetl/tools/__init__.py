"""Tool kinds, one module each: input model, result, examples and `run`.

The pipeline runs `sleep`, `wait`, `playbook` and `workbook`. Packages add kinds through entry points.
"""

from functools import cache

from noetl.tools.registry import ToolKinds

GROUP = "noetl.tools"
_KINDS = (
    "noop", "http", "python", "postgres", "duckdb", "ducklake", "shell", "script", "playbook", "workbook",
    "secrets", "transfer", "artifact", "resolve", "outbox", "nats", "snowflake", "container", "mcp", "sleep",
    "wait",
)  # fmt: skip
MODULES = {name: f"noetl.tools.{name}" for name in _KINDS}


@cache
def kinds() -> ToolKinds:
    """Return every tool kind by name, each loaded on first use."""
    return ToolKinds(MODULES, GROUP)
