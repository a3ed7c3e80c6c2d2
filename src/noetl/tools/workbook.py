"""Kind `workbook`: a call of a named task of the same playbook."""

from typing import Annotated

from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Workbook task to call."""

    task: Annotated[
        str | None,
        about("Name of the task in `workbook`; by default the calling task's `name`.", "normalise", rendered=""),
    ] = None


KIND = describe(
    Input,
    name="workbook",
    summary="Call a named task of the playbook's workbook.",
    description="""
    The task reads `input`, `workload`, `keychain` and `ctx`, but not the caller's `iter` or `args`. Its result is the result of
    the call. A `null` in the `input` of the called task is a default that the caller fills.
    """,
    result=None,
    examples="""
    # Call a task
    - tidy:
        kind: workbook
        task: normalise
        args: { orders: "{{ workload.orders }}" }

    # Call the task with the same name
    - name: normalise
      kind: workbook
      input:
        orders: "{{ workload.orders }}"
      set:
        ctx.tidy: "{{ output.data }}"
    """,
)
