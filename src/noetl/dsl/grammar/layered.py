"""Fields that may stand in any `spec` and are layered from the executor down to the task: inner wins, maps merge."""

from __future__ import annotations

from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

LAYERED: tuple[Field, ...] = (
    Field("pool", Text(), "The worker pool that runs the work.", example="gpu", rendered="server"),
    Field("priority", Number(integer=True), "Higher goes first in the queue.", default="0", rendered="server"),
    Field("requires", LevelOf("work_requires"), "What a worker must have to be handed the work."),
    Field("strict_templates", Flag(), "Whether an undefined value that reaches a tool is an error.", default="true"),
    Field("durability", Choice(("step", "task")), "What is on disk before the work goes on.", default="step"),
    Field("result", LevelOf("result"), "Where results are kept and what of them travels inline."),
    Field("retries", LevelOf("retries"), "The runtime retry for tasks without a policy of their own."),
    Field("timeouts", LevelOf("timeouts"), "Default time-outs for tools, sinks and loop items."),
    Field("limits", LevelOf("limits"), "Bounds that end runaway work with a clear error."),
    Field(
        "on_when_error",
        Choice(("treat_as_false", "fail_step")),
        "What a condition that cannot be evaluated means; it is always recorded.",
        default="treat_as_false",
    ),
    Field(
        "on_sink_fail",
        Choice(("retry", "max_attempts→fail_step", "async_ignore")),
        "What a task that stores does to its step when it has failed for good: `async_ignore` lets the pipeline go on.",
        default="retry",
    ),
    Field(
        "evaluate_when_timeout_ms",
        Number(least=0),
        "What one condition may cost: 10,000 operations per millisecond, so that it is the same on every machine.",
        default="100",
    ),
)

_BYTES = Number(integer=True, least=0)
_ATTEMPTS = LevelOf("retry_limits")

LAYERED_LEVELS: tuple[Level, ...] = (
    Level(
        "work_requires",
        "What a worker must have to be handed the work.",
        (Field("tags", ListOf(Text()), "Tags of the worker; those of a step and of its tasks add up.", example="gpu"),),
        example="requires: { tags: [gpu] }",
    ),
    Level(
        "result",
        "How the results of a task are stored and shown.",
        (
            Field("inline_max_bytes", _BYTES, "Larger results are stored and passed by reference.", default="65536"),
            Field("preview_max_bytes", _BYTES, "How much of a stored result travels beside its reference."),
            Field("store", OneOf((LevelOf("result_store"), Text())), "Where a large result goes."),
            Field(
                "select", ListOf(LevelOf("result_select")), "Parts of the result to keep inline beside the reference."
            ),
            Field(
                "strategy", Choice(("append", "replace", "merge", "concat")), "How the parts of a stream become one."
            ),
            Field("merge_path", Text(), "Which list inside each part is joined."),
        ),
        example="result: { inline_max_bytes: 4096, store: { kind: file } }",
    ),
    Level(
        "result_store",
        "A place for large results.",
        (
            Field(
                "kind",
                Choice(("auto", "inline", "db", "file", "s3", "gcs", "azure", "nats_kv", "nats_object")),
                "Which store; `auto` picks by size.",
                default="auto",
            ),
            Field("scope", Choice(("step", "execution", "workflow", "permanent")), "How long others may refer to it."),
            Field("ttl", OneOf((Text(), Number(least=0))), "When it may be removed: seconds, or a text such as `7d`."),
            Field("compression", Choice(("none", "gzip", "zstd", "lz4")), "How the bytes are packed."),
            Field("bucket", Text(), "The bucket or container of an object store.", rendered="worker"),
            Field("prefix", Text(), "What the object's name begins with.", rendered="worker"),
        ),
    ),
    Level(
        "result_select",
        "One part of a result that is kept inline.",
        (
            Field("path", Text(), "Where in the result, as a JSON path.", required=True, example="$.data.next"),
            Field("as", Text(), "The name it has beside the reference.", required=True),
        ),
    ),
    Level(
        "retries",
        "Runtime retries, by what failed.",
        (
            Field("plugin", _ATTEMPTS, "For the call of a tool."),
            Field(
                "sink",
                _ATTEMPTS,
                "For a task that stores, over what `plugin` says; where neither says it, 8 runs and at most 60 seconds.",
            ),
            Field("dispatch", LevelOf("delivery_limits"), "For handing work to another worker after one was lost."),
        ),
    ),
    Level(
        "retry_limits",
        "How often and how long to try again; exponential with jitter.",
        (
            Field("max_attempts", Number(integer=True, least=1), "Runs in all, the first included.", default="6"),
            Field("base_ms", Number(integer=True, least=0), "The first delay in milliseconds.", default="200"),
            Field("max_ms", Number(integer=True, least=0), "No delay is longer.", default="30000"),
        ),
    ),
    Level(
        "delivery_limits",
        "How often work is handed to a worker, and how long it waits after each loss; exponential with jitter.",
        (
            Field(
                "max_attempts",
                Number(integer=True, least=1),
                "Deliveries in all, as `limits.max_attempts`; the server has a bound of its own.",
            ),
            Field("base_ms", Number(integer=True, least=0), "The first delay in milliseconds.", default="0"),
            Field("max_ms", Number(integer=True, least=0), "No delay is longer.", default="30000"),
        ),
    ),
    Level(
        "timeouts",
        "Default time-outs in milliseconds.",
        (
            Field("tool_default_ms", Number(least=0), "For one attempt of a task; without it there is no limit."),
            Field("sink_default_ms", Number(least=0), "For one attempt of a task that stores, over `tool_default_ms`."),
            Field("loop_item_ms", Number(least=0), "For one item of a loop without an `item_timeout_ms`."),
        ),
    ),
    Level(
        "limits",
        "Bounds on one run.",
        (
            Field("max_transitions", Number(integer=True, least=1), "Task starts in one pipeline.", default="1000000"),
            Field(
                "max_attempts",
                Number(integer=True, least=1),
                "Deliveries of one piece of work to workers; the server has a bound of its own.",
            ),
            Field("max_items", Number(integer=True, least=0), "Items of one loop."),
            Field("max_result_bytes", Number(integer=True, least=0), "The largest result that is accepted."),
        ),
    ),
)

ANY_MAP: Type = MapOf(Type())
