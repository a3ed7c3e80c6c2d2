"""Levels of a task: the fields that every kind has, and the task policy."""

from __future__ import annotations

from msgspec.structs import replace

from noetl.dsl.grammar.forms import else_form
from noetl.dsl.grammar.kinds import Kind
from noetl.dsl.grammar.layered_settings import ANY_MAP, BYTES, COUNT, LAYERED, OTHER_POLICIES, TIME
from noetl.dsl.grammar.step import CONDITION, STEP_LEVELS
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, Number, OneOf, Text

ACTIONS = ("continue", "retry", "jump", "break", "fail", "skip")

_PATHS = OneOf((ListOf(Text()), Text()))

COMMON: tuple[Field, ...] = (
    Field("kind", Text(), "Tool kind that does the work.", required=True, example="http"),
    Field("name", Text(), "Label of the task in its pipeline."),
    Field("desc", Text(), "What the task does.", aliases=("description",)),
    Field("spec", LevelOf("task_spec"), "Settings and policy of the task."),
    Field(
        "input", ANY_MAP, "Inputs of the task. They override those of the step.", aliases=("args",), rendered="worker"
    ),
    Field("set", ANY_MAP, "Writes after the task succeeds.", rendered="worker"),
    Field("set_ctx", ANY_MAP, "Writes to `ctx`; the names have no scope prefix.", rendered="worker"),
    Field("set_iter", ANY_MAP, "Writes to `iter`; the names have no scope prefix.", rendered="worker"),
    Field("output", LevelOf("output"), "Which parts of the result to keep, and where."),
    Field(
        "auth", OneOf((Text(), ANY_MAP)), "Name of the credential to use.", aliases=("credential",), rendered="worker"
    ),
    Field("timeout_ms", TIME, "Timeout of one attempt, in milliseconds.", rendered="worker"),
    Field("timeout", TIME, "Timeout of one attempt, in seconds.", rendered="worker"),
    Field("timeout_seconds", TIME, "Timeout of one attempt, in seconds.", rendered="worker"),
    Field("idempotent", Flag(), "The task is idempotent: NoETL may retry it after a lost response."),
    Field("priority", Number(integer=True), "Short for `spec.priority`."),
    Field("assert", LevelOf("assert"), "Inputs that must be given, and keys that the result must have."),
)

TASK_LEVELS: tuple[Level, ...] = (
    Level("task", "One tool call of a pipeline. Further fields depend on its kind.", COMMON, open=True),
    Level(
        "workbook_task",
        "A named task that `kind: workbook` calls.",
        (*COMMON, Field("tool", LevelOf("task"), "The task, where the entry itself holds only the name.")),
        open=True,
    ),
    Level(
        "task_spec",
        "Settings and policy of a task. Fields of the tool kind are allowed here too.",
        (
            Field("policy", LevelOf("task_policy"), "What to do for each outcome."),
            Field(
                "timeout",
                OneOf((LevelOf("task_timeout"), TIME)),
                "Timeouts of one attempt, in seconds.",
                rendered="worker",
            ),
            Field("idempotent", Flag(), "The task is idempotent."),
            Field("assert", LevelOf("assert"), "Inputs that must be given, and keys that the result must have."),
            Field(
                "sink", Flag(), "The task only writes: `_prev` and the step's result stay those of the task before it."
            ),
            *LAYERED,
        ),
        open=True,
    ),
    Level(
        "assert",
        "What a task expects and returns. If it is not so, the task fails with an error of kind `schema`.",
        (
            Field("expects", _PATHS, "Inputs that must be given, and not be null: names, or paths with dots."),
            Field("returns", _PATHS, "Keys that the result must have: names, or paths with dots."),
        ),
        example="assert: { expects: [city], returns: [temperature] }",
    ),
    Level(
        "task_timeout",
        "Timeouts of one attempt, in seconds.",
        (
            Field("connect", TIME, "Timeout for connecting.", rendered="worker"),
            Field("read", TIME, "Timeout for reading the response.", rendered="worker"),
            Field("total", TIME, "Timeout of the whole attempt.", rendered="worker"),
        ),
    ),
    Level(
        "task_policy",
        "What to do for each outcome of a task.",
        (
            Field("rules", ListOf(LevelOf("task_rule"), least=1), "Rules; the first match decides.", required=True),
            Field(
                "on_unmatched",
                Choice(("continue", "fail")),
                "What an error that matches no rule does.",
                default="continue",
            ),
            *OTHER_POLICIES,
        ),
        example="policy:\n  rules:\n    - when: \"{{ outcome.status == 'error' }}\"\n      then: { do: retry, attempts: 3 }",
    ),
    Level(
        "task_rule",
        "One rule of a task policy.",
        (
            Field("when", CONDITION, "Condition of the rule. It can read `outcome`.", rendered="worker"),
            Field("then", LevelOf("task_then"), "Action of the rule."),
            Field(
                "else",
                else_form("task_then", "task_else", ("do", "set", "set_ctx", "set_iter")),
                "Last rule, for everything that no rule above matched.",
            ),
        ),
    ),
    Level(
        "task_else",
        "What to do when no rule above matched.",
        (Field("then", LevelOf("task_then"), "Action of the rule.", required=True),),
    ),
    Level(
        "task_then",
        "The action of a rule.",
        (
            Field("do", Choice(ACTIONS), "Control action.", required=True),
            Field("attempts", COUNT, "With `retry`: maximum attempts, including the first.", rendered="worker"),
            Field("delay", TIME, "With `retry`: delay before the first retry, in seconds.", rendered="worker"),
            Field(
                "backoff",
                Choice(("none", "fixed", "linear", "exponential")),
                "With `retry`: how the delay grows.",
                default="none",
                rendered="worker",
            ),
            Field("max_delay", TIME, "With `retry`: longest delay, in seconds.", rendered="worker"),
            Field("jitter", OneOf((Flag(), TIME)), "With `retry`: randomize the delays.", rendered="worker"),
            Field("to", Text(), "With `jump`: label of the task to continue with, or `previous`."),
            Field("set", ANY_MAP, "Writes before the action.", rendered="worker"),
            Field("set_ctx", ANY_MAP, "Writes to `ctx`; the names have no scope prefix.", rendered="worker"),
            Field("set_iter", ANY_MAP, "Writes to `iter`; the names have no scope prefix.", rendered="worker"),
        ),
    ),
    Level(
        "output",
        "Which parts of a result to keep, and where.",
        (
            Field(
                "output_select",
                ListOf(OneOf((LevelOf("result_select"), Text()))),
                "Parts of the result to keep inline.",
                aliases=("select",),
            ),
            Field("store", OneOf((LevelOf("result_store"), Text())), "Store for large results."),
            Field("inline_max_bytes", BYTES, "Larger results are stored."),
            Field("preview_max_bytes", BYTES, "Size of the preview."),
        ),
    ),
)

_TASK_SPEC = next(level for level in TASK_LEVELS if level.name == "task_spec")
_OF_A_WRITE = {"mode", "values", "transactional", "marker_table"}
_PROMOTED = ("input", "output", "auth", "timeout_ms", "timeout_seconds")


def task_level(kind: Kind) -> Level:
    """Return the level of a task: the common fields and the kind's own inputs."""
    own = {name for known in kind.input.fields for name in (known.name, *known.aliases)}
    shared = tuple(known for known in COMMON if known.name not in own)
    return Level(f"task:{kind.name}", kind.summary, (*shared, *kind.input.fields), open=kind.input.open)


def cursor_level(kind: Kind) -> Level:
    """Return the level of a cursor: its fields and the inputs its kind needs."""
    level = next(step_level for step_level in STEP_LEVELS if step_level.name == "cursor")
    if kind.input.field("query") is None:
        return level
    other = {name for group in (*kind.one_of, *kind.at_most_one) if "query" in group for name in group}
    own = {name for known in level.fields for name in (known.name, *known.aliases)} | other | _OF_A_WRITE
    more = tuple(known for known in kind.input.fields if known.name not in own)
    optional = tuple(replace(known, required=False) for known in more)
    return Level(f"cursor:{kind.name}", level.summary, (*level.fields, *optional), open=kind.input.open)


def task_spec_level(kind: Kind) -> Level:
    """Return the level of a task's `spec`, which also accepts the inputs of the tool."""
    shared = tuple(known for known in COMMON if known.name in _PROMOTED and kind.input.field(known.name) is None)
    taken = set(_TASK_SPEC.names())
    own = tuple(known for known in (*shared, *kind.input.fields) if known.name not in taken)
    optional = tuple(
        Field(known.name, known.type, known.summary, aliases=known.aliases, rendered=known.rendered) for known in own
    )
    settings = tuple(_with_pool(known, kind) for known in _TASK_SPEC.fields)
    return Level(f"task_spec:{kind.name}", _TASK_SPEC.summary, (*settings, *optional), open=kind.input.open)


def _with_pool(setting: Field, kind: Kind) -> Field:
    """Return a setting of a task; a map under `pool` sizes the kind's own pool."""
    own = kind.input.field("pool") if setting.name == "pool" else None
    return setting if own is None else replace(setting, type=OneOf((own.type, setting.type)))
