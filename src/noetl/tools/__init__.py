"""Tool kinds, one module each: input model, result, examples and `run`.

The pipeline runs `sleep`, `wait`, `playbook` and `workbook`. Packages add kinds through entry points.
"""

from functools import cache

from noetl.tools.registry import ToolKinds

GROUP = "noetl.tools"
MODULES = {
    "noop": "noetl.tools.noop",
    "http": "noetl.tools.http",
    "python": "noetl.tools.python",
    "postgres": "noetl.tools.postgres",
    "duckdb": "noetl.tools.duckdb",
    "ducklake": "noetl.tools.ducklake",
    "shell": "noetl.tools.shell",
    "script": "noetl.tools.script",
    "playbook": "noetl.tools.playbook",
    "workbook": "noetl.tools.workbook",
    "secrets": "noetl.tools.secrets",
    "transfer": "noetl.tools.transfer",
    "artifact": "noetl.tools.artifact",
    "resolve": "noetl.tools.resolve",
    "outbox": "noetl.tools.outbox",
    "nats": "noetl.tools.nats",
    "snowflake": "noetl.tools.snowflake",
    "container": "noetl.tools.container",
    "mcp": "noetl.tools.mcp",
    "sleep": "noetl.tools.sleep",
    "wait": "noetl.tools.wait",
}


@cache
def kinds() -> ToolKinds:
    """Return every tool kind by name, each loaded on first use."""
    return ToolKinds(MODULES, GROUP)
