"""Settings of every `spec`, layered from executor to task; inner values win."""

from __future__ import annotations

from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

ANY_MAP: Type = MapOf(Type())
BYTES = Number(integer=True, least=0)
COUNT = Number(integer=True, least=1)
TIME = Number(least=0)
_WHEN_ERRORS = Choice(("treat_as_false", "fail_step"))
_WHEN_DEFAULT = "false, and the step fails if no arc is taken"

# What an executor sets for all steps, and a step for itself.
FAILURE_SETTINGS: tuple[Field, ...] = (
    Field("no_next_is_error", Flag(), "Fail the step when no arc of its router matches.", default="false"),
    Field(
        "on_step_fail",
        Choice(("halt", "continue"), prefixes=("route_edge:",)),
        "What a failed step does when no arc handles the failure.",
        default="halt",
    ),
)
FAILURE_POLICY = Field("failure", LevelOf("failure_policy"), "Whether a failed loop item stops the loop.")
# Read, so that playbooks with them run. Settings with these meanings are in `spec`.
OTHER_POLICIES: tuple[Field, ...] = (
    Field("defaults", Type(), "Defaults of the tasks below; only the settings of a `spec` have an effect."),
    Field("results", Type(), "How results are stored; only the settings of `spec.result` have an effect."),
)
ON_WHEN_ERROR = Field(
    "on_when_error", _WHEN_ERRORS, "What a condition that fails to evaluate does.", default=_WHEN_DEFAULT
)
LAYERED: tuple[Field, ...] = (
    Field("pool", Text(), "Worker pool that runs the work.", example="gpu", rendered="server"),
    Field(
        "priority", Number(integer=True), "Priority in the queue; higher runs first.", default="0", rendered="server"
    ),
    Field("requires", LevelOf("work_requires"), "What a worker must have to lease the work."),
    Field("strict_templates", Flag(), "Fail when an undefined value reaches a tool.", default="true"),
    Field(
        "durability", Choice(("step", "task")), "What is stored before work continues: steps or tasks.", default="step"
    ),
    Field("result", LevelOf("result"), "Where results are stored and which parts stay inline."),
    Field("retries", LevelOf("retries"), "Runtime retry of tasks without a policy."),
    Field("timeouts", LevelOf("timeouts"), "Default timeouts of tools, sinks and loop items."),
    Field("limits", LevelOf("limits"), "Limits that stop runaway work with an error."),
    Field(
        "on_when_error",
        _WHEN_ERRORS,
        "What a condition that fails to evaluate does. The error is recorded in any case.",
        default=_WHEN_DEFAULT,
    ),
    Field(
        "on_sink_fail",
        Choice(("retry", "max_attempts→fail_step", "async_ignore")),
        "What a storing task (a sink) does to its step after its last failed attempt; with `async_ignore` the pipeline continues.",
        default="retry",
    ),
    Field(
        "evaluate_when_timeout_ms",
        TIME,
        "Evaluation budget of one condition: 10,000 operations per millisecond, the same on every machine.",
        default="100",
    ),
)

_ATTEMPTS = LevelOf("retry_limits")

LAYERED_LEVELS: tuple[Level, ...] = (
    Level(
        "work_requires",
        "What a worker must have to lease the work.",
        (Field("tags", ListOf(Text()), "Tags of the worker; those of step and tasks add up.", example="gpu"),),
        example="requires: { tags: [gpu] }",
    ),
    Level(
        "result",
        "How the results of a task are stored.",
        (
            Field("inline_max_bytes", BYTES, "Larger results are stored and passed by reference.", default="65536"),
            Field("preview_max_bytes", BYTES, "Size of the preview of a stored result."),
            Field("store", OneOf((LevelOf("result_store"), Text())), "Store for large results."),
            Field("select", ListOf(LevelOf("result_select")), "Parts of the result to keep inline with the reference."),
            Field("strategy", Choice(("append", "replace", "merge", "concat")), "How parts of a stream are combined."),
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
                Choice(("auto", "inline", "db", "file", "s3", "gcs", "azure", "nats_kv", "nats_object", "kv")),
                "Type of the store; `auto` chooses by size, `kv` means `nats_kv` where NATS is set up, else `db`. This version has `inline`, `db` and `file`.",
                default="auto",
            ),
            Field("scope", Choice(("step", "execution", "workflow", "permanent")), "Validity of the reference."),
            Field("ttl", OneOf((Text(), TIME)), "Retention time: seconds, or a text such as `7d`."),
            Field(
                "compression",
                Choice(("none", "gzip", "zstd", "lz4")),
                "Compression of the stored bytes. This version has `none` and `gzip`.",
            ),
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
                LevelOf("sink_limits"),
                "Retries of a storing task. What it leaves out is taken from `plugin`, else from these defaults.",
            ),
            Field("dispatch", LevelOf("delivery_limits"), "Redelivery of work after a worker was lost."),
        ),
    ),
    Level(
        "retry_limits",
        "Limits of a retry with exponential backoff and jitter.",
        (
            Field("max_attempts", COUNT, "Maximum attempts, including the first.", default="6"),
            Field("base_ms", BYTES, "First delay, in milliseconds.", default="200"),
            Field("max_ms", BYTES, "Longest delay, in milliseconds.", default="30000"),
        ),
    ),
    Level(
        "sink_limits",
        "Limits of the retries of a storing task, with exponential backoff and jitter.",
        (
            Field("max_attempts", COUNT, "Maximum attempts, including the first.", default="8"),
            Field("base_ms", BYTES, "First delay, in milliseconds.", default="200"),
            Field("max_ms", BYTES, "Longest delay, in milliseconds.", default="60000"),
        ),
    ),
    Level(
        "delivery_limits",
        "Limits of the redelivery of work after a worker was lost, with exponential backoff and jitter.",
        (
            Field(
                "max_attempts", COUNT, "Maximum deliveries, like `limits.max_attempts`; the server has its own limit."
            ),
            Field("base_ms", BYTES, "First delay, in milliseconds.", default="0"),
            Field("max_ms", BYTES, "Longest delay, in milliseconds.", default="30000"),
        ),
    ),
    Level(
        "timeouts",
        "Default timeouts, in milliseconds.",
        (
            Field("tool_default_ms", TIME, "Timeout of one attempt of a task. Default: no timeout."),
            Field("sink_default_ms", TIME, "Timeout of one attempt of a storing task."),
            Field("loop_item_ms", TIME, "Timeout of one loop item where the loop has no `item_timeout_ms`."),
        ),
    ),
    Level(
        "limits",
        "Limits of one run.",
        (
            Field("max_transitions", COUNT, "Maximum task starts in one pipeline.", default="1000000"),
            Field("max_step_runs", COUNT, "Maximum runs of one step in an execution: ends a cycle.", default="10000"),
            Field("max_attempts", COUNT, "Maximum deliveries of one work item; the server has its own limit."),
            Field("max_items", BYTES, "Maximum number of items in one loop."),
            Field("max_result_bytes", BYTES, "Maximum size of a result."),
        ),
    ),
)
