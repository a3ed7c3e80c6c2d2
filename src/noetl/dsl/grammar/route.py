"""Fields of routing: `next` and its arcs."""

from __future__ import annotations

from noetl.dsl.grammar.layered import ANY_MAP
from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, OneOf, Text, Type

CONDITION: Type = OneOf((Flag(), Text()))
_ON_WHEN_ERROR = Field(
    "on_when_error",
    Choice(("treat_as_false", "fail_step")),
    "What a condition that cannot be evaluated means.",
    default="treat_as_false",
)

ROUTE_LEVELS: tuple[Level, ...] = (
    Level(
        "next",
        "The router of a step: which steps its tokens go to.",
        (
            Field("spec", LevelOf("next_spec"), "How the arcs are tried."),
            Field("arcs", ListOf(LevelOf("arc")), "The ways out, in order.", required=True),
        ),
        example="next:\n  spec: { mode: exclusive }\n  arcs:\n    - step: done",
    ),
    Level(
        "next_spec",
        "How the arcs of a router are tried.",
        (
            Field(
                "mode",
                Choice(("exclusive", "inclusive")),
                "The first arc that matches, or all of them.",
                default="exclusive",
            ),
            _ON_WHEN_ERROR,
        ),
    ),
    Level(
        "arc",
        "One way out of a step.",
        (
            Field("step", Text(), "The step it leads to.", required=True),
            Field("when", CONDITION, "When it is taken; without it, on success only.", rendered="server"),
            Field("args", ANY_MAP, "What the next step-run gets as `args`.", aliases=("input",), rendered="server"),
            Field("set", ANY_MAP, "Writes to `ctx` when the arc is taken.", rendered="server"),
            Field("set_ctx", ANY_MAP, "Writes to `ctx`, names without the scope.", rendered="server"),
            Field("label", Text(), "A name for `on_step_fail: route_edge:<label>` and for pictures."),
            Field("spec", LevelOf("arc_spec"), "Settings of this arc."),
        ),
    ),
    Level("arc_spec", "Settings of one arc.", (_ON_WHEN_ERROR,)),
)
