"""Describes the kind `playbook`: another playbook as a child execution."""

from typing import Annotated

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """The child to run."""

    path: Annotated[
        str, about("The child's path in the catalog; in a local run also a file beside the caller.", "billing/invoice")
    ]
    version: Annotated[str | int | float | None, about("Which version; by default the latest.", 3)] = None
    return_step: Annotated[
        str | None,
        about("The step of the child whose result is wanted, instead of the child's own.", "summary", rendered=""),
    ] = None


KIND = describe(
    Input,
    name="playbook",
    summary="Runs another playbook and waits for its result.",
    description="""
    The child is an execution with a log of its own; `input` is its payload. While it runs the caller holds no worker.
    Cancelling the caller, or a deadline of it, ends the child too. The result is the child's result as it is. A local run
    finds children by their `metadata.path` below the current folder; folders that are links are searched too, each once.
    """,
    result=None,
    suspends=True,
    examples=(
        KindExample(
            "Hand work to a child",
            """
            - invoice:
                kind: playbook
                path: billing/invoice
                args: { customer: "{{ workload.customer_id }}" }
            """,
        ),
        KindExample(
            "Take the result of one of the child's steps",
            """
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
        ),
    ),
)
