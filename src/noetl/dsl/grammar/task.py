"""Fields that every task has, whatever its kind, and the task policy."""

from __future__ import annotations

from msgspec.structs import replace

from noetl.dsl.grammar.forms import else_form
from noetl.dsl.grammar.layered import ANY_MAP, LAYERED
from noetl.dsl.grammar.route import CONDITION
from noetl.dsl.grammar.step import STEP_LEVELS
from noetl.dsl.kinds import Kind
from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, Number, OneOf, Text

ACTIONS = ("continue", "retry", "jump", "break", "fail", "skip")
_SECONDS = Number(least=0)

COMMON: tuple[Field, ...] = (
    Field("kind", Text(), "The tool that does the work.", required=True, example="http"),
    Field("name", Text(), "The label of the task in its pipeline."),
    Field("desc", Text(), "What it is for.", aliases=("description",)),
    Field("spec", LevelOf("task_spec"), "Settings and the policy of the task."),
    Field("input", ANY_MAP, "Inputs of the task, over those of the step.", aliases=("args",), rendered="worker"),
    Field("set", ANY_MAP, "Writes after the task has succeeded.", rendered="worker"),
    Field("set_ctx", ANY_MAP, "Writes to `ctx`, names without the scope.", rendered="worker"),
    Field("set_iter", ANY_MAP, "Writes to `iter`, names without the scope.", rendered="worker"),
    Field("output", LevelOf("output"), "What of the result is kept, and where."),
    Field(
        "auth", OneOf((Text(), ANY_MAP)), "The credential to use, by name.", aliases=("credential",), rendered="worker"
    ),
    Field("timeout_ms", _SECONDS, "How long one attempt may take, in milliseconds.", rendered="worker"),
    Field("timeout", _SECONDS, "How long one attempt may take, in seconds.", rendered="worker"),
    Field("timeout_seconds", _SECONDS, "How long one attempt may take, in seconds.", rendered="worker"),
    Field("idempotent", Flag(), "Running it twice does no harm, so it may be retried after a lost answer."),
    Field("priority", Number(integer=True), "Short for `spec.priority`."),
)

TASK_LEVELS: tuple[Level, ...] = (
    Level("task", "One tool call of a pipeline. Fields beside these belong to its kind.", COMMON, open=True),
    Level(
        "workbook_task",
        "A named task that `kind: workbook` calls.",
        (*COMMON, Field("tool", LevelOf("task"), "The task itself, where the entry holds only its name.")),
        open=True,
    ),
    Level(
        "task_spec",
        "Settings and the policy of a task; fields of the kind may stand here too.",
        (
            Field("policy", LevelOf("task_policy"), "What each outcome leads to."),
            Field(
                "timeout",
                OneOf((LevelOf("task_timeout"), _SECONDS)),
                "Time-outs of one attempt, in seconds.",
                rendered="worker",
            ),
            Field("idempotent", Flag(), "Running it twice does no harm."),
            *LAYERED,
        ),
        open=True,
    ),
    Level(
        "task_timeout",
        "Time-outs of one attempt, in seconds.",
        (
            Field("connect", _SECONDS, "Until the connection stands.", rendered="worker"),
            Field("read", _SECONDS, "Until the answer comes.", rendered="worker"),
            Field("total", _SECONDS, "For all of it.", rendered="worker"),
        ),
    ),
    Level(
        "task_policy",
        "What each outcome of a task leads to.",
        (
            Field(
                "rules",
                ListOf(LevelOf("task_rule"), least=1),
                "Tried from the top; the first match decides.",
                required=True,
            ),
            Field(
                "on_unmatched",
                Choice(("continue", "fail")),
                "What an error that no rule matches does.",
                default="continue",
            ),
        ),
        example="policy:\n  rules:\n    - when: \"{{ outcome.status == 'error' }}\"\n      then: { do: retry, attempts: 3 }",
    ),
    Level(
        "task_rule",
        "One rule of a task policy.",
        (
            Field("when", CONDITION, "The condition; it sees `outcome`.", rendered="worker"),
            Field("then", LevelOf("task_then"), "What to do."),
            Field(
                "else",
                else_form("task_then", "task_else", ("do", "set", "set_ctx", "set_iter")),
                "The rule for everything that nothing above matched; it stands last.",
            ),
        ),
    ),
    Level(
        "task_else",
        "What happens when no rule above matched.",
        (Field("then", LevelOf("task_then"), "What to do.", required=True),),
    ),
    Level(
        "task_then",
        "What a matching rule does.",
        (
            Field("do", Choice(ACTIONS), "The control action.", required=True),
            Field(
                "attempts",
                Number(integer=True, least=1),
                "With `retry`: runs in all, the first included.",
                rendered="worker",
            ),
            Field("delay", _SECONDS, "With `retry`: seconds before the first one.", rendered="worker"),
            Field(
                "backoff",
                Choice(("none", "fixed", "linear", "exponential")),
                "With `retry`: how the delay grows.",
                default="none",
                rendered="worker",
            ),
            Field("max_delay", _SECONDS, "With `retry`: no delay is longer.", rendered="worker"),
            Field("jitter", OneOf((Flag(), Number(least=0))), "With `retry`: spread the delays.", rendered="worker"),
            Field("to", Text(), "With `jump`: the label to go to, or `previous`."),
            Field("set", ANY_MAP, "Writes before the action.", rendered="worker"),
            Field("set_ctx", ANY_MAP, "Writes to `ctx`, names without the scope.", rendered="worker"),
            Field("set_iter", ANY_MAP, "Writes to `iter`, names without the scope.", rendered="worker"),
        ),
    ),
    Level(
        "output",
        "What of a result is kept, and where.",
        (
            Field(
                "output_select",
                ListOf(OneOf((LevelOf("result_select"), Text()))),
                "Parts to keep inline.",
                aliases=("select",),
            ),
            Field("store", OneOf((LevelOf("result_store"), Text())), "Where a large result goes."),
            Field("inline_max_bytes", Number(integer=True, least=0), "Larger results are stored."),
            Field("preview_max_bytes", Number(integer=True, least=0), "How much travels beside the reference."),
        ),
    ),
)

_TASK_SPEC = next(level for level in TASK_LEVELS if level.name == "task_spec")
_OF_A_WRITE = {"mode", "values", "transactional", "marker_table"}
_PROMOTED = ("input", "output", "auth", "timeout_ms", "timeout_seconds")


def task_level(kind: Kind) -> Level:
    """Give the level of a task of that kind: what every task has, and the kind's own inputs."""
    own = {name for known in kind.input.fields for name in (known.name, *known.aliases)}
    shared = tuple(known for known in COMMON if known.name not in own)
    return Level(f"task:{kind.name}", kind.summary, (*shared, *kind.input.fields), open=kind.input.open)


def cursor_level(kind: Kind) -> Level:
    """Give the level of a cursor of that kind: beside the cursor's own fields, what the kind needs to run its statement."""
    level = next(found for found in STEP_LEVELS if found.name == "cursor")
    if kind.input.field("query") is None:
        return level
    other = {name for group in (*kind.one_of, *kind.at_most_one) if "query" in group for name in group}
    own = {name for known in level.fields for name in (known.name, *known.aliases)} | other | _OF_A_WRITE
    more = tuple(known for known in kind.input.fields if known.name not in own)
    optional = tuple(replace(known, required=False) for known in more)
    return Level(f"cursor:{kind.name}", level.summary, (*level.fields, *optional), open=kind.input.open)


def task_spec_level(kind: Kind) -> Level:
    """Give the level of a task's `spec`, where the inputs of the tool may stand too."""
    shared = tuple(known for known in COMMON if known.name in _PROMOTED and kind.input.field(known.name) is None)
    taken = set(_TASK_SPEC.names())
    own = tuple(known for known in (*shared, *kind.input.fields) if known.name not in taken)
    optional = tuple(
        Field(known.name, known.type, known.summary, aliases=known.aliases, rendered=known.rendered) for known in own
    )
    return Level(f"task_spec:{kind.name}", _TASK_SPEC.summary, (*_TASK_SPEC.fields, *optional), open=kind.input.open)
