"""The kind `noop`: does nothing and gives back what it was told."""

from typing import Annotated, Any

from noetl.dsl.kinds import KindExample
from noetl.model.outcome import Outcome, ok
from noetl.ports import ToolContext
from noetl.tools.contract import ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """What a task that does nothing gives back."""

    result: Annotated[Any, about("The result of the task, as it stands here.", {"state": "skipped"})] = None
    message: Annotated[str | None, about("A line for the reader of the run.", "Nothing to load today.")] = None


KIND = describe(
    Input,
    name="noop",
    summary="Does nothing and succeeds.",
    description="""
    Use it to give a value a place, to hold a `set`, or to end a branch where people can see it.
    The result is `result` when it is there, else a map with the `message`, else null.
    """,
    result=None,
    at_most_one=(("result", "message"),),
    examples=(
        KindExample(
            "Say why a branch ends",
            """
            - nothing_to_do:
                kind: noop
                message: "No orders since {{ workload.since }}."
            """,
        ),
        KindExample(
            "Keep a value for the next steps",
            """
            - name: remember
              kind: noop
              result: { region: eu, limit: 100 }
              set:
                ctx.region: "{{ output.data.region }}"
            """,
        ),
    ),
)


def run(input: Input, context: ToolContext) -> Outcome:
    if input.message is not None:
        context.log(input.message)
        if input.result is None:
            return ok({"message": input.message})
    return ok(input.result)
