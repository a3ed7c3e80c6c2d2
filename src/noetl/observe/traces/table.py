"""Table of every span: its parent and its attributes.

The reference page is made of it. Tested in tests/observe/test_traces.py, which sees each span with its attributes.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class SpanKind(NamedTuple):
    """Row of the table; a name may end with what differs, such as a kind."""

    name: str
    parent: str
    attributes: tuple[str, ...]  # besides `execution_id`
    about: str  # one sentence


_TASK: Final = ("step_id", "call_id", "task", "tool_kind", "attempt", "loop_index", "worker_id", "ok", "error_class")
ALL: Final = (
    SpanKind(
        "server.execution", "that of the caller", ("workflow_ref", "workload_size", "status", "error_class"),
        "An execution; a child has the step-run that started it as its parent.",
    ),
    SpanKind(
        "server.dispatch", "server.execution",
        ("step_id", "call_id", "tool_kind", "worker_id", "loop_index", "loop_count", "loop_failed", "ok", "error_class"),
        "A step-run from scheduled to ended; below that of a loop, each range of items.",
    ),
    SpanKind(
        "worker.plugin.<kind>", "server.dispatch", (*_TASK, "spec_signature", "args_signature"), "An attempt of a task.",
    ),
    SpanKind(
        "worker.sink.<sink_id>", "server.dispatch", (*_TASK, "sink_id", "sink_type", "table", "mode", "rows_written"),
        "A write to a sink.",
    ),
    SpanKind(
        "server.route", "server.execution", ("from_step", "edge_index", "target_step", "condition"), "An arc that was taken.",
    ),
    SpanKind(
        "server.when_eval", "server.dispatch", ("step_id", "when_expr", "outcome"),
        "A gate: `true`, `false` or `error`; without a step-run, below `server.execution`.",
    ),
)  # fmt: skip


def kind_of(name: str) -> SpanKind | None:
    """Return the row of a span by its name."""
    return next((one for one in ALL if name.startswith(one.name.partition("<")[0])), None)
