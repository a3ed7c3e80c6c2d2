"""Describes the kind `resolve`: the value behind a reference, whole or in parts."""

from typing import Annotated, Any

import msgspec

from noetl.dsl.kinds import KindExample
from noetl.tools.contract import Count, ToolInput, about, describe


class Part(ToolInput, frozen=True, kw_only=True):
    """One part of the value that is wanted."""

    path: Annotated[str, about("Where in the value, as a JSON path.", "$.items[0].id", rendered="")]
    name: Annotated[str, about("The name it has in the result.", "first_id", rendered="")] = msgspec.field(name="as")


class Input(ToolInput, frozen=True, kw_only=True):
    """Which reference to follow, and what of it is wanted."""

    ref: Annotated[
        str | dict[str, Any] | list[Any],
        about("A reference, its `noetl://` address, or a list of them.", "{{ ctx.pages_ref }}"),
    ]
    select: Annotated[list[Part] | None, about("Parts to give back by name, instead of the whole value.")] = None
    offset: Annotated[Count, about("With a list: how many items to leave out.", 1000)] = 0
    limit: Annotated[Count | None, about("With a list: how many items at most.", 500)] = None


KIND = describe(
    Input,
    name="resolve",
    summary="Gives the value behind a reference.",
    description="""
    Templates follow references by themselves; use this kind to say where that happens, to read a long list piece by piece, or to
    take several parts at once. The result is the value, or a map of the selected parts.
    """,
    result=None,
    examples=(
        KindExample(
            "Read a long list piece by piece",
            """
            - page:
                kind: resolve
                ref: "{{ workload.report_ref }}"
                offset: 1000
                limit: 500
            """,
        ),
        KindExample(
            "Take two parts of a large result",
            """
            - name: parts
              kind: resolve
              ref: "{{ workload.report_ref }}"
              select:
                - { path: $.total, as: total }
                - { path: "$.items[0].id", as: first_id }
              set:
                ctx.total: "{{ output.data.total }}"
            """,
        ),
    ),
)
