"""Describes the kind `wait`: a pause until somebody sends a signal."""

from typing import Annotated

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import Seconds, ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Which signal to wait for."""

    signal: Annotated[str, about("The signal's name.", "approved")]
    timeout_s: Annotated[Seconds | None, about("Seconds until it is an error of kind `timeout`.", 86400)] = None


KIND = describe(
    Input,
    name="wait",
    summary="Waits for a signal without holding a worker.",
    description="""
    The result is the signal's data. A signal that came early is kept; each signal satisfies one `wait`, the oldest first.
    Use it for approvals and for systems that call back.
    """,
    result=None,
    suspends=True,
    examples=(
        KindExample(
            "Wait for an approval, a day at most",
            """
            - approval:
                kind: wait
                signal: approved
                timeout_s: 86400
                spec:
                  policy:
                    rules:
                      - when: "{{ outcome.status == 'error' and outcome.error.kind == 'timeout' }}"
                        then: { do: break, set_ctx: { approved: false } }
                      - when: "{{ outcome.status == 'error' }}"
                        then: { do: fail }
                      - else:
                          then: { do: continue, set_ctx: { approved: true } }
            """,
        ),
        KindExample(
            "Wait for a call back with a name of its own",
            """
            - name: paid
              kind: wait
              signal: "paid-{{ workload.order_id }}"
              set:
                ctx.payment: "{{ output.data }}"
            """,
        ),
    ),
)
