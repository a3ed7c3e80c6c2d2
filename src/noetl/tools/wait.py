"""Kind `wait`: a pause until a signal arrives."""

from typing import Annotated

from noetl.tools.contract import Seconds, ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """Signal to wait for."""

    signal: Annotated[str, about("Name of the signal.", "approved")]
    timeout_s: Annotated[Seconds | None, about("Seconds until it fails with an error of kind `timeout`.", 86400)] = None


KIND = describe(
    Input,
    name="wait",
    summary="Wait for a signal without holding a worker.",
    description="""
    The result is the signal's data. A signal that arrives early is queued; each signal completes one `wait`, the oldest first.
    Use it for approvals and callbacks. `noetl approve ID` and `noetl reject ID` answer a wait if the playbook reads `approved` of
    the result: their data is `{approved, by, comment}`.
    """,
    result=None,
    suspends=True,
    examples="""
    # Wait for an approval, at most one day
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

    # Wait for a callback with a unique name
    - name: paid
      kind: wait
      signal: "paid-{{ workload.order_id }}"
      set:
        ctx.payment: "{{ output.data }}"
    """,
)
