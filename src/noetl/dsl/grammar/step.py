"""Fields of a step: its gate, its loop, its pipeline and its router."""

from __future__ import annotations

from noetl.dsl.grammar.forms import else_form, next_form, tool_form
from noetl.dsl.grammar.layered import ANY_MAP, LAYERED
from noetl.dsl.grammar.route import CONDITION
from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

_MILLISECONDS = Number(least=0)
_FAILURE = Field("failure", LevelOf("failure_policy"), "What a failed loop item does to the rest.")
_REDUCERS = ("sum", "min", "max", "append", "merge", "last", "count")

STEP_LEVELS: tuple[Level, ...] = (
    Level(
        "step",
        "A step: an admission gate, a pipeline of tasks, and a router.",
        (
            Field("step", Text(), "Its name, unique in the workflow.", required=True),
            Field("desc", Text(), "What it is for.", aliases=("description",)),
            Field("spec", LevelOf("step_spec"), "Settings and policies of the step."),
            Field("loop", LevelOf("loop"), "Repeat the pipeline for every item of a list or row of a cursor."),
            Field(
                "input", ANY_MAP, "Inputs of the step, over what the arc bound.", aliases=("args",), rendered="worker"
            ),
            Field("tool", tool_form(), "The pipeline: one task, or a list of them."),
            Field("set", ANY_MAP, "Writes that happen when the step has ended.", rendered="server"),
            Field("set_ctx", ANY_MAP, "Writes to `ctx`, names without the scope.", rendered="server"),
            Field("next", next_form(), "Where to go from here."),
            Field("compensate", Text(), "The step that undoes this one when the run fails and rolls back."),
        ),
        example="- step: fetch\n  tool: { kind: http, url: https://example.org/data }\n  next: store",
    ),
    Level(
        "step_spec",
        "Settings and policies of a step.",
        (
            Field("policy", LevelOf("step_policy"), "Admission, life cycle and failure."),
            Field(
                "join",
                OneOf((Choice(("all", "any", "each")), Number(integer=True, least=1))),
                "Which siblings to wait for.",
            ),
            Field("timeout_s", Number(least=0), "How long a step-run may take, in seconds.", rendered="server"),
            Field(
                "on_step_fail",
                Choice(("halt", "continue"), prefixes=("route_edge:",)),
                "What a failure that no arc takes does.",
                default="halt",
            ),
            Field("no_next_is_error", Flag(), "Whether a router that matches nothing is a failure.", default="false"),
            *LAYERED,
        ),
    ),
    Level(
        "step_policy",
        "The policies of a step.",
        (
            Field("admit", LevelOf("admit_policy"), "The gate: which tokens may start the step."),
            Field("lifecycle", LevelOf("lifecycle_policy"), "How long a step-run may live."),
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
                "Tried from the top; the first match decides.",
                required=True,
            ),
        ),
        example='admit:\n  rules:\n    - when: "{{ ctx.ready }}"\n      then: { allow: true }',
    ),
    Level(
        "admit_rule",
        "One rule of an admission gate.",
        (
            Field("when", CONDITION, "The condition.", rendered="server"),
            Field("then", LevelOf("admit_then"), "Whether the token is let in."),
            Field(
                "else",
                else_form("admit_then", "admit_else", ("allow",)),
                "The rule for everything that nothing above matched; it stands last.",
            ),
        ),
    ),
    Level(
        "admit_else",
        "What happens when no rule above matched.",
        (Field("then", LevelOf("admit_then"), "What to do.", required=True),),
    ),
    Level(
        "admit_then",
        "The answer of a gate.",
        (Field("allow", Flag(), "Let the token in, or park it.", required=True),),
    ),
    Level(
        "lifecycle_policy",
        "How long a step-run may live.",
        (
            Field("timeout_s", Number(least=0), "Seconds from its start.", rendered="server"),
            Field("deadline_s", Number(least=0), "Seconds from its scheduling, waiting included.", rendered="server"),
        ),
    ),
    Level(
        "failure_policy",
        "What a failed loop item does to the rest.",
        (
            Field(
                "mode",
                Choice(("fail_fast", "best_effort")),
                "Stop at the first failure, or finish every item.",
                default="fail_fast",
            ),
        ),
    ),
    Level(
        "loop",
        "The repetition of a step.",
        (
            Field("in", Type(), "The list to go over.", rendered="server"),
            Field("iterator", Text(), "The name of the item in templates.", example="city"),
            Field("cursor", LevelOf("cursor"), "Claim rows from a store until none is left, instead of `in`."),
            Field("spec", LevelOf("loop_spec"), "How the items are run."),
            Field("mode", Choice(("sequential", "parallel")), "Short for `spec.mode`.", default="sequential"),
            Field("max_in_flight", Number(integer=True, least=1), "Short for `spec.max_in_flight`.", rendered="server"),
            Field("item_timeout_ms", _MILLISECONDS, "How long one item may take.", rendered="server"),
            Field("total_timeout_ms", _MILLISECONDS, "How long the whole loop may take.", rendered="server"),
        ),
        example='loop: { in: "{{ workload.cities }}", iterator: city, spec: { mode: parallel } }',
    ),
    Level(
        "cursor",
        "A source of rows that are claimed one after another.",
        (
            Field("kind", Text(), "The tool kind that claims.", required=True, example="postgres"),
            Field("auth", Text(), "The credential it uses.", rendered="worker"),
            Field(
                "claim", Text(code="sql"), "The statement that claims the next row.", required=True, rendered="worker"
            ),
            Field("key", Text(), "The column that tells rows apart.", required=True),
        ),
    ),
    Level(
        "loop_spec",
        "How the items of a loop are run.",
        (
            Field(
                "mode", Choice(("sequential", "parallel")), "One after another, or many at once.", default="sequential"
            ),
            Field(
                "max_in_flight", Number(integer=True, least=1), "Items at once, over all workers.", rendered="server"
            ),
            Field("policy", LevelOf("loop_policy"), "Where items run and what a failure does."),
            Field("reduce", MapOf(Choice(_REDUCERS)), "How writes of several items to one `ctx` key become one value."),
            *LAYERED,
        ),
    ),
    Level(
        "loop_policy",
        "Where the items of a loop run and what a failure does.",
        (
            Field("exec", Choice(("local", "distributed")), "On one lease, or spread over the pool."),
            _FAILURE,
        ),
    ),
)
