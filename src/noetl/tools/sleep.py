"""Kind `sleep`: a durable timer."""

from typing import Annotated

from noetl.tools.contract import Seconds, ToolInput, about, describe


class Input(ToolInput, frozen=True, kw_only=True):
    """How long to wait."""

    seconds: Annotated[Seconds | None, about("Seconds to wait from now.", 90)] = None
    until: Annotated[
        str | int | float | None,
        about(
            "Time to wait for: ISO 8601, or seconds since 1970. A time in the past does not wait.",
            "2030-01-01T08:00:00Z",
        ),
    ] = None


KIND = describe(
    Input,
    name="sleep",
    summary="Wait for a time without holding a worker.",
    description="""
    The timer is durable: a restart of a worker or a server neither loses nor shortens it. `seconds` is a duration, which
    lasts as long when the system clock is set; `until` is a time of day, which follows the clock.
    """,
    one_of=(("seconds", "until"),),
    result={"started_at": "When the wait began, in ISO 8601.", "woke_at": "When the wait ended, in ISO 8601."},
    suspends=True,
    examples="""
    # Wait 90 seconds
    - pause:
        kind: sleep
        seconds: 90

    # Wait until a time from the workload
    - name: opening
      kind: sleep
      until: "{{ workload.opens_at }}"
      set:
        ctx.opened_at: "{{ output.data.woke_at }}"
    """,
)
