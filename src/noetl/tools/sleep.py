"""Describes the kind `sleep`: a timer that outlives workers and servers."""

from typing import Annotated

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import Seconds, ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """How long to wait."""

    seconds: Annotated[Seconds | None, about("Seconds to wait from now.", 90)] = None
    until: Annotated[
        str | int | float | None,
        about(
            "The moment to wait for: ISO 8601 text, or seconds since 1970. A moment in the past is over at once.",
            "2030-01-01T08:00:00Z",
        ),
    ] = None


KIND = describe(
    Input,
    name="sleep",
    summary="Waits for a time without holding a worker.",
    description="""
    The timer is recorded, so a restart of a worker or a server neither loses nor shortens it.
    """,
    one_of=(("seconds", "until"),),
    result={
        "started_at": "When the wait began, as ISO 8601 text.",
        "woke_at": "When it was over, as ISO 8601 text.",
    },
    suspends=True,
    examples=(
        KindExample(
            "Leave the other side some time",
            """
            - pause:
                kind: sleep
                seconds: 90
            """,
        ),
        KindExample(
            "Wait for a moment that an input names",
            """
            - name: opening
              kind: sleep
              until: "{{ workload.opens_at }}"
              set:
                ctx.opened_at: "{{ output.data.woke_at }}"
            """,
        ),
    ),
)
