"""Kind `noop`: does nothing and returns its input."""

from typing import Annotated, Any

from noetl.model.outcome import Outcome, ok
from noetl.ports import ToolContext
from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """What the task returns."""

    result: Annotated[Any, about("Result of the task.", {"state": "skipped"})] = None
    message: Annotated[str | None, about("Message to log.", "Nothing to load today.")] = None


KIND = describe(
    Input,
    name="noop",
    summary="Do nothing and succeed.",
    description="""
    Use it to name a value, to run a `set`, or to end a branch visibly. The result is `result` if set, else a map with the
    `message`, else null.
    """,
    result=None,
    at_most_one=(("result", "message"),),
    examples="""
    # Log why a branch ends
    - nothing_to_do:
        kind: noop
        message: "No orders since {{ workload.since }}."

    # Keep a value for the next steps
    - name: remember
      kind: noop
      result: { region: eu, limit: 100 }
      set:
        ctx.region: "{{ output.data.region }}"
    """,
)


def run(input: Input, context: ToolContext) -> Outcome:
    if input.message is not None:
        context.log(input.message)
        if input.result is None:
            return ok({"message": input.message})
    return ok(input.result)
