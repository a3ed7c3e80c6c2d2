"""Describes the kind `workbook`: a call of a named task of the same playbook."""

from typing import Annotated

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Which task of the workbook to call."""

    task: Annotated[
        str | None,
        about("The task's name in `workbook`; by default the calling task's own `name`.", "normalise", rendered=""),
    ] = None


KIND = describe(
    Input,
    name="workbook",
    summary="Calls a named task of the playbook's workbook.",
    description="""
    A call, not a copy of text: the task sees `input`, `workload`, `keychain` and `ctx` (to read), but not the caller's `iter` or
    `args`. Its result is the result of the call.
    """,
    result=None,
    examples=(
        KindExample(
            "Call a task",
            """
            - tidy:
                kind: workbook
                task: normalise
                args: { orders: "{{ workload.orders }}" }
            """,
        ),
        KindExample(
            "Call the task of the same name",
            """
            - name: normalise
              kind: workbook
              input:
                orders: "{{ workload.orders }}"
              set:
                ctx.tidy: "{{ output.data }}"
            """,
        ),
    ),
)
