"""Settings of every `spec`, layered from executor to task; inner values win."""

from __future__ import annotations

from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

LAYERED: tuple[Field, ...] = (
    Field("pool", Text(), "Worker pool that runs the work.", example="gpu", rendered="server"),
    Field(
        "priority", Number(integer=True), "Priority in the queue; higher runs first.", default="0", rendered="server"
    ),
    Field("requires", LevelOf("work_requires"), "What a worker must have to lease the work."),
    Field("strict_templates", Flag(), "Fail when an undefined value reaches a tool.", default="true"),
    Field(
        "durability",
        Choice(("step", "task")),
        "What is stored before the work continues: each step, or each task.",
        default="step",
    ),
    Field("result", LevelOf("result"), "Where results are stored and which parts stay inline."),
    Field("retries", LevelOf("retries"), "Runtime retry of tasks without a policy."),
    Field("timeouts", LevelOf("timeouts"), "Default timeouts of tools, sinks and loop items."),
    Field("limits", LevelOf("limits"), "Limits that stop runaway work with an error."),
    Field(
        "on_when_error",
        Choice(("treat_as_false", "fail_step")),
        "What a condition that fails to evaluate does. The error is recorded in any case.",
        default="treat_as_false",
    ),
    Field(
        "on_sink_fail",
        Choice(("retry", "max_attempts→fail_step", "async_ignore")),
        "What a storing task (a sink) does to its step after its last failed attempt; with `async_ignore` the pipeline continues.",
        default="retry",
    ),
    Field(
        "evaluate_when_timeout_ms",
        Number(least=0),
        "Evaluation budget of one condition: 10,000 operations per millisecond, the same on every machine.",
        default="100",
    ),
)

_BYTES = Number(integer=True, least=0)
_ATTEMPTS = LevelOf("retry_limits")

LAYERED_LEVELS: tuple[Level, ...] = (
    Level(
        "work_requires",
        "What a worker must have to lease the work.",
        (
            Field(
                "tags",
                ListOf(Text()),
                "Tags the worker must have. Tags of a step and of its tasks add up.",
                example="gpu",
            ),
        ),
        example="requires: { tags: [gpu] }",
    ),
    Level(
        "result",
        "How the results of a task are stored.",
        (
            Field(
                "inline_max_bytes",
                _BYTES,
                "Size above which a result is stored and passed by reference.",
                default="65536",
            ),
            Field(
                "preview_max_bytes", _BYTES, "Size of the preview that travels with the reference of a stored result."
            ),
            Field("store", OneOf((LevelOf("result_store"), Text())), "Store for large results."),
            Field("select", ListOf(LevelOf("result_select")), "Parts of the result to keep inline with the reference."),
            Field(
                "strategy", Choice(("append", "replace", "merge", "concat")), "How the parts of a stream are combined."
            ),
            Field("merge_path", Text(), "Path of the list in each part to combine."),
        ),
        example="result: { inline_max_bytes: 4096, store: { kind: file } }",
    ),
    Level(
        "result_store",
        "A store for large results.",
        (
            Field(
                "kind",
                Choice(("auto", "inline", "db", "file", "s3", "gcs", "azure", "nats_kv", "nats_object")),
                "Type of the store; `auto` chooses by size.",
                default="auto",
            ),
            Field(
                "scope", Choice(("step", "execution", "workflow", "permanent")), "How long the reference stays valid."
            ),
            Field("ttl", OneOf((Text(), Number(least=0))), "Retention time: seconds, or a text such as `7d`."),
            Field("compression", Choice(("none", "gzip", "zstd", "lz4")), "Compression of the stored bytes."),
            Field("bucket", Text(), "Bucket or container of an object store.", rendered="worker"),
            Field("prefix", Text(), "Prefix of the object name.", rendered="worker"),
        ),
    ),
    Level(
        "result_select",
        "One part of a result to keep inline.",
        (
            Field("path", Text(), "JSON path of the part in the result.", required=True, example="$.data.next"),
            Field("as", Text(), "Name of the part beside the reference.", required=True),
        ),
    ),
    Level(
        "retries",
        "Runtime retries by type of work.",
        (
            Field("plugin", _ATTEMPTS, "Retries of a tool call."),
            Field(
                "sink",
                _ATTEMPTS,
                "Retries of a storing task, overriding `plugin`. Without either: 8 attempts and delays of at most 60 seconds.",
            ),
            Field("dispatch", LevelOf("delivery_limits"), "Redelivery of work after a worker was lost."),
        ),
    ),
    Level(
        "retry_limits",
        "Limits of a retry with exponential backoff and jitter.",
        (
            Field(
                "max_attempts",
                Number(integer=True, least=1),
                "Maximum number of attempts, including the first.",
                default="6",
            ),
            Field("base_ms", Number(integer=True, least=0), "First delay, in milliseconds.", default="200"),
            Field("max_ms", Number(integer=True, least=0), "Longest delay, in milliseconds.", default="30000"),
        ),
    ),
    Level(
        "delivery_limits",
        "Limits of the redelivery of work after a worker was lost, with exponential backoff and jitter.",
        (
            Field(
                "max_attempts",
                Number(integer=True, least=1),
                "Maximum number of deliveries, like `limits.max_attempts`. The server has its own limit.",
            ),
            Field("base_ms", Number(integer=True, least=0), "First delay, in milliseconds.", default="0"),
            Field("max_ms", Number(integer=True, least=0), "Longest delay, in milliseconds.", default="30000"),
        ),
    ),
    Level(
        "timeouts",
        "Default timeouts, in milliseconds.",
        (
            Field("tool_default_ms", Number(least=0), "Timeout of one attempt of a task. Default: no timeout."),
            Field(
                "sink_default_ms",
                Number(least=0),
                "Timeout of one attempt of a storing task, overriding `tool_default_ms`.",
            ),
            Field("loop_item_ms", Number(least=0), "Timeout of one loop item where the loop has no `item_timeout_ms`."),
        ),
    ),
    Level(
        "limits",
        "Limits of one run.",
        (
            Field(
                "max_transitions",
                Number(integer=True, least=1),
                "Maximum number of task starts in one pipeline.",
                default="1000000",
            ),
            Field(
                "max_attempts",
                Number(integer=True, least=1),
                "Maximum number of deliveries of one work item to workers. The server has its own limit.",
            ),
            Field("max_items", Number(integer=True, least=0), "Maximum number of items in one loop."),
            Field("max_result_bytes", Number(integer=True, least=0), "Maximum size of a result."),
        ),
    ),
)

ANY_MAP: Type = MapOf(Type())
