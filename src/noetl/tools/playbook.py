"""Kind `playbook`: another playbook as a child execution."""

from typing import Annotated, Any

from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Child playbook to run."""

    path: Annotated[
        str, about("Path of the child in the catalog; in a local run also a file beside the caller.", "billing/invoice")
    ]
    version: Annotated[str | int | float | None, about("Version; by default the latest.", 3)] = None
    payload: Annotated[
        dict[str, Any] | None, about("Payload of the child, over what `input` has.", {"customer": 7})
    ] = None
    task: Annotated[str | None, about("Label of the task in a pipeline; same as `name`.", "invoice", rendered="")] = (
        None
    )
    return_step: Annotated[
        str | None,
        about("Step of the child whose result to return, instead of the child's own.", "summary", rendered=""),
    ] = None


KIND = describe(
    Input,
    name="playbook",
    summary="Run another playbook and wait for its result.",
    description="""
    The child is an execution with its own log; `input`, or `payload`, is its payload. The caller holds no worker while the child runs.
    Cancelling the caller, or its deadline, also ends the child. The result is the child's result. A local run finds children
    by their `metadata.path` below the current folder; symbolic links to folders are followed, each once.
    """,
    result=None,
    suspends=True,
    examples="""
    # Run a child
    - invoice:
        kind: playbook
        path: billing/invoice
        args: { customer: "{{ workload.customer_id }}" }

    # Return the result of one of the child's steps
    - name: rates
      kind: playbook
      path: finance/exchange_rates
      version: 3
      return_step: rates
      input:
        day: "{{ workload.since }}"
      set:
        ctx.rates: "{{ output.data }}"
    """,
)
