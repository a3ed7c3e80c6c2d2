"""Levels of a step: its gate, loop, pipeline, router and arcs."""

from __future__ import annotations

from noetl.dsl.grammar.forms import else_form, next_form, tool_form
from noetl.dsl.grammar.layered import ANY_MAP, LAYERED
from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

CONDITION: Type = OneOf((Flag(), Text()))
_MILLISECONDS = Number(least=0)
_FAILURE = Field("failure", LevelOf("failure_policy"), "Whether a failed loop item stops the loop.")
_ON_WHEN_ERROR = Field(
    "on_when_error",
    Choice(("treat_as_false", "fail_step")),
    "What a condition that fails to evaluate does.",
    default="treat_as_false",
)
_REDUCERS = ("sum", "min", "max", "append", "merge", "last", "count")

STEP_LEVELS: tuple[Level, ...] = (
    Level(
        "step",
        "A step: an admission gate, a pipeline of tasks, and a router.",
        (
            Field("step", Text(), "Name of the step, unique in the workflow.", required=True),
            Field("desc", Text(), "What the step does.", aliases=("description",)),
            Field("spec", LevelOf("step_spec"), "Settings and policies of the step."),
            Field("loop", LevelOf("loop"), "Repeat the pipeline for every item of a list or every row of a cursor."),
            Field(
                "input",
                ANY_MAP,
                "Inputs of the step. They override the `args` of the arc.",
                aliases=("args",),
                rendered="worker",
            ),
            Field("tool", tool_form(), "The pipeline: one task or a list of tasks."),
            Field("set", ANY_MAP, "Writes when the step ends.", rendered="server"),
            Field("set_ctx", ANY_MAP, "Writes to `ctx`; the names have no scope prefix.", rendered="server"),
            Field("next", next_form(), "The router: which steps run next."),
            Field("compensate", Text(), "Step that undoes this one when the run fails and rolls back."),
        ),
        example="- step: fetch\n  tool: { kind: http, url: https://example.org/data }\n  next: store",
    ),
    Level(
        "step_spec",
        "Settings and policies of a step.",
        (
            Field("policy", LevelOf("step_policy"), "Policies for admission, life cycle and failure."),
            Field(
                "join",
                OneOf((Choice(("all", "any", "each")), Number(integer=True, least=1))),
                "Which branches of a fork to wait for.",
            ),
            Field("timeout_s", Number(least=0), "Timeout of a step-run, in seconds.", rendered="server"),
            Field(
                "on_step_fail",
                Choice(("halt", "continue"), prefixes=("route_edge:",)),
                "What a failed step does when no arc handles the failure.",
                default="halt",
            ),
            Field("no_next_is_error", Flag(), "Fail the step when no arc of its router matches.", default="false"),
            *LAYERED,
        ),
    ),
    Level(
        "step_policy",
        "The policies of a step.",
        (
            Field("admit", LevelOf("admit_policy"), "The admission gate: which tokens may start the step."),
            Field("lifecycle", LevelOf("lifecycle_policy"), "Time limits of a step-run."),
            _FAILURE,
        ),
    ),
    Level(
        "admit_policy",
        "The admission gate of a step.",
        (
            Field(
                "rules",
                ListOf(LevelOf("admit_rule"), least=1),
                "Rules, evaluated from the top; the first match decides.",
                required=True,
            ),
        ),
        example='admit:\n  rules:\n    - when: "{{ ctx.ready }}"\n      then: { allow: true }',
    ),
    Level(
        "admit_rule",
        "One rule of an admission gate.",
        (
            Field("when", CONDITION, "Condition of the rule.", rendered="server"),
            Field("then", LevelOf("admit_then"), "Whether to admit the token."),
            Field(
                "else",
                else_form("admit_then", "admit_else", ("allow",)),
                "Rule for everything that no rule above matched. It must be the last rule.",
            ),
        ),
    ),
    Level(
        "admit_else",
        "What the gate does when no rule above matched.",
        (Field("then", LevelOf("admit_then"), "Whether to admit the token.", required=True),),
    ),
    Level(
        "admit_then",
        "The decision of a gate.",
        (Field("allow", Flag(), "`true` admits the token, `false` parks it.", required=True),),
    ),
    Level(
        "lifecycle_policy",
        "Time limits of a step-run.",
        (
            Field(
                "timeout_s", Number(least=0), "Timeout from the start of the step-run, in seconds.", rendered="server"
            ),
            Field(
                "deadline_s",
                Number(least=0),
                "Deadline from scheduling, including the time in the queue, in seconds.",
                rendered="server",
            ),
        ),
    ),
    Level(
        "failure_policy",
        "Whether a failed loop item stops the loop.",
        (
            Field(
                "mode",
                Choice(("fail_fast", "best_effort")),
                "`fail_fast` stops at the first failure, `best_effort` runs every item.",
                default="fail_fast",
            ),
        ),
    ),
    Level(
        "loop",
        "The loop of a step.",
        (
            Field("in", Type(), "List to iterate over.", rendered="server"),
            Field("iterator", Text(), "Name of the current item in templates.", example="city"),
            Field("cursor", LevelOf("cursor"), "Claim rows from a store until none is left. Use it instead of `in`."),
            Field("spec", LevelOf("loop_spec"), "How the items run."),
            Field("mode", Choice(("sequential", "parallel")), "Short for `spec.mode`.", default="sequential"),
            Field("max_in_flight", Number(integer=True, least=1), "Short for `spec.max_in_flight`.", rendered="server"),
            Field("item_timeout_ms", _MILLISECONDS, "Timeout of one item, in milliseconds.", rendered="server"),
            Field("total_timeout_ms", _MILLISECONDS, "Timeout of the whole loop, in milliseconds.", rendered="server"),
        ),
        example='loop: { in: "{{ workload.cities }}", iterator: city, spec: { mode: parallel } }',
    ),
    Level(
        "cursor",
        "A source of rows that the loop claims one by one.",
        (
            Field("kind", Text(), "Tool kind that runs the claim statement.", required=True, example="postgres"),
            Field("auth", Text(), "Credential to connect with.", rendered="worker"),
            Field("claim", Text(code="sql"), "Statement that claims the next row.", required=True, rendered="worker"),
            Field("key", Text(), "Column that identifies a row.", required=True),
        ),
    ),
    Level(
        "loop_spec",
        "How the items of a loop run.",
        (
            Field(
                "mode",
                Choice(("sequential", "parallel")),
                "Run items one after another, or many at the same time.",
                default="sequential",
            ),
            Field(
                "max_in_flight",
                Number(integer=True, least=1),
                "Maximum number of items that run at the same time, over all workers.",
                rendered="server",
            ),
            Field("policy", LevelOf("loop_policy"), "Where items run and whether a failure stops the loop."),
            Field("reduce", MapOf(Choice(_REDUCERS)), "Reducer for each `ctx` key that several items write."),
            *LAYERED,
        ),
    ),
    Level(
        "loop_policy",
        "Where the items of a loop run and whether a failure stops it.",
        (
            Field(
                "exec", Choice(("local", "distributed")), "Run all items on one lease, or spread them over the pool."
            ),
            _FAILURE,
        ),
    ),
)

ROUTE_LEVELS: tuple[Level, ...] = (
    Level(
        "next",
        "The router of a step: which steps run next.",
        (
            Field("spec", LevelOf("next_spec"), "How the router evaluates its arcs."),
            Field("arcs", ListOf(LevelOf("arc")), "The arcs, in order of evaluation.", required=True),
        ),
        example="next:\n  spec: { mode: exclusive }\n  arcs:\n    - step: done",
    ),
    Level(
        "next_spec",
        "How a router evaluates its arcs.",
        (
            Field(
                "mode",
                Choice(("exclusive", "inclusive")),
                "`exclusive` takes the first arc that matches, `inclusive` takes all of them.",
                default="exclusive",
            ),
            _ON_WHEN_ERROR,
        ),
    ),
    Level(
        "arc",
        "One way out of a step.",
        (
            Field("step", Text(), "Step that the arc leads to.", required=True),
            Field(
                "when", CONDITION, "Condition of the arc. Without it, the arc matches success only.", rendered="server"
            ),
            Field(
                "args", ANY_MAP, "Values that the next step-run reads as `args`.", aliases=("input",), rendered="server"
            ),
            Field("set", ANY_MAP, "Writes to `ctx` when the arc is taken.", rendered="server"),
            Field("set_ctx", ANY_MAP, "Writes to `ctx`; the names have no scope prefix.", rendered="server"),
            Field("label", Text(), "Name of the arc in `on_step_fail: route_edge:<label>` and in drawings."),
            Field("spec", LevelOf("arc_spec"), "Settings of this arc."),
        ),
    ),
    Level("arc_spec", "Settings of one arc.", (_ON_WHEN_ERROR,)),
)
