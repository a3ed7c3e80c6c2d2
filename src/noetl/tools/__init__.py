"""Tool kinds, one module each: what a task of that kind takes, gives and looks like, and how it is run.

`sleep`, `wait`, `playbook` and `workbook` are run by the pipeline. Packages add kinds through entry points.
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
    """Give every tool kind by name, each loaded when it is first asked for."""
    return ToolKinds(MODULES, GROUP)
