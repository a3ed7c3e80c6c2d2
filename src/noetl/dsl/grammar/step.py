"""Levels of a step: its gate, loop, pipeline, router and arcs."""

from __future__ import annotations

from noetl.dsl.grammar.forms import else_form, next_form, tool_form
from noetl.dsl.grammar.layered_settings import (
    ANY_MAP,
    COUNT,
    FAILURE_POLICY,
    FAILURE_SETTINGS,
    LAYERED,
    ON_WHEN_ERROR,
    OTHER_POLICIES,
    TIME,
)
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, OneOf, Text, Type

CONDITION: Type = OneOf((Flag(), Text()))
_MODES = Choice(("sequential", "parallel"), synonyms=(("cursor", "parallel"),))
_REDUCERS = ("sum", "min", "max", "append", "merge", "last", "count")

NO_MATCH = (  # other spellings
    *((word, "quiet") for word in ("ignore", "end", "stop", "continue", "none", "skip", "warn", "log", "silent")),
    *((word, "error") for word in ("fail", "halt", "raise")),
)

STEP_LEVELS: tuple[Level, ...] = (
    Level(
        "step",
        "A step: an admission gate, a pipeline of tasks, and a router.",
        (
            Field("step", Text(), "Name of the step, unique in the workflow.", required=True),
            Field("desc", Text(), "What the step does.", aliases=("description",)),
            Field("spec", LevelOf("step_spec"), "Settings and policies of the step."),
            Field("loop", LevelOf("loop"), "Repeat the pipeline for every item of a list or every row of a cursor."),
            Field("input", ANY_MAP, "Inputs of the step; they override `args`.", aliases=("args",), rendered="worker"),
            Field("tool", tool_form(), "The pipeline: one task or a list of tasks."),
            Field("output", LevelOf("output"), "`output` of the last task."),
            Field("assert", LevelOf("assert"), "Inputs that the first task must get, and keys of the step's result."),
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
            Field("join", OneOf((Choice(("all", "any", "each")), COUNT)), "Which branches of a fork to wait for."),
            Field("timeout_s", TIME, "Timeout of a step-run, in seconds.", rendered="server"),
            Field("output", LevelOf("output"), "`output` of the last task."),
            *FAILURE_SETTINGS,
            *LAYERED,
        ),
    ),
    Level(
        "step_policy",
        "The policies of a step.",
        (
            Field("admit", LevelOf("admit_policy"), "The admission gate: which tokens may start the step."),
            Field("lifecycle", LevelOf("lifecycle_policy"), "Time limits of a step-run."),
            FAILURE_POLICY,
            *OTHER_POLICIES,
        ),
    ),
    Level(
        "admit_policy",
        "The admission gate of a step.",
        (
            Field("rules", ListOf(LevelOf("admit_rule"), least=1), "Rules; the first match decides.", required=True),
            Field("mode", Text(), "Has no effect: the first rule that matches decides."),
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
                "Last rule, for everything that no rule above matched.",
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
        (
            Field(
                "allow",
                OneOf((Flag(), Choice(("skip",)))),
                "`true` admits the token, `false` parks it. `skip` skips the step: its arcs without a `when` are taken.",
                required=True,
            ),
        ),
    ),
    Level(
        "lifecycle_policy",
        "Time limits of a step-run.",
        (
            Field("timeout_s", TIME, "Timeout from the start of the step-run, in seconds.", rendered="server"),
            Field("deadline_s", TIME, "Deadline in seconds from scheduling, queue time included.", rendered="server"),
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
            Field("mode", _MODES, "Short for `spec.mode`.", default="sequential"),
            Field("max_in_flight", COUNT, "Short for `spec.max_in_flight`.", rendered="server"),
            Field("frame", LevelOf("frame"), "Short for `spec.frame`."),
            Field("item_timeout_ms", TIME, "Timeout of one item, in milliseconds.", rendered="server"),
            Field("total_timeout_ms", TIME, "Timeout of the whole loop, in milliseconds.", rendered="server"),
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
            Field(
                "key",
                OneOf((ListOf(Text(), least=1), Text())),
                "Column or columns that identify a row.",
                default="the whole row",
            ),
        ),
    ),
    Level(
        "frame",
        "Frames of a cursor loop: how many rows are claimed at once, and whether the pipeline runs for each or for all.",
        (
            Field(
                "max_rows",
                COUNT,
                "Maximum number of rows in a frame. The claim runs again until the frame is full; it reads the number "
                "as `frame.max_rows`.",
                default="100",
                rendered="server",
            ),
            Field("max_seconds", TIME, "How long rows are claimed for one frame, in seconds.", rendered="server"),
            Field("max_bytes", COUNT, "Size of the rows, as JSON, after which a frame is full.", rendered="server"),
            Field("lease_seconds", TIME, "Has no effect: a worker renews its leases by itself."),
            Field("heartbeat_seconds", TIME, "Has no effect: a worker renews its leases by itself."),
            Field(
                "row_concurrency",
                COUNT,
                "With `process: row`: maximum number of concurrent rows of one frame.",
                default="1",
                rendered="server",
            ),
            Field(
                "process",
                Choice(("row", "frame")),
                "Run the pipeline for each row, or once for each frame, with the list of its rows as the iterator.",
                default="row",
            ),
        ),
        example="frame: { max_rows: 100, process: frame }",
    ),
    Level(
        "loop_spec",
        "How the items of a loop run.",
        (
            Field("mode", _MODES, "Run items one by one, or concurrently.", default="sequential"),
            Field(
                "max_in_flight",
                COUNT,
                "Maximum number of concurrent items, or frames, over all workers.",
                rendered="server",
            ),
            Field("frame", LevelOf("frame"), "Frames of a cursor loop."),
            Field("policy", LevelOf("loop_policy"), "Where items run and whether a failure stops the loop."),
            Field("reduce", MapOf(Choice(_REDUCERS)), "Reducer for each `ctx` key that several items write."),
            *LAYERED,
        ),
    ),
    Level(
        "loop_policy",
        "Where the items of a loop run and whether a failure stops it.",
        (
            Field("exec", Choice(("local", "distributed")), "Run items on one lease, or over the pool."),
            FAILURE_POLICY,
            *OTHER_POLICIES,
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
            Field(
                "on_no_match",
                Choice(("quiet", "error"), synonyms=NO_MATCH),
                "What a success does that no arc matches: `quiet` ends the branch, `error` fails the step, like "
                "`no_next_is_error` of the step's `spec`.",
                default="quiet",
            ),
            ON_WHEN_ERROR,
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
    Level("arc_spec", "Settings of one arc.", (ON_WHEN_ERROR,)),
)
