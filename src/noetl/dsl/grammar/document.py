"""Levels of the document: root, metadata, keychain, executor and rollback policy."""

from __future__ import annotations

from noetl.dsl.grammar.forms import workbook_form
from noetl.dsl.grammar.layered import ANY_MAP, LAYERED
from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

API_VERSIONS = ("noetl.io/v1", "noetl.io/v2", "noetl.io/v10")

DOCUMENT_LEVELS: tuple[Level, ...] = (
    Level(
        "playbook",
        "A playbook: inputs, credentials, reusable tasks and a workflow.",
        (
            Field("apiVersion", Choice(API_VERSIONS), "Version of the playbook language.", required=True),
            Field("kind", Choice(("Playbook",)), "Always `Playbook`.", required=True),
            Field(
                "metadata", LevelOf("metadata"), "Name, catalog path and description of the playbook.", required=True
            ),
            Field(
                "keychain",
                OneOf((ListOf(OneOf((LevelOf("keychain"), Text()))), MapOf(Type()))),
                "Credentials the playbook uses.",
            ),
            Field("executor", LevelOf("executor"), "Where and with which settings the playbook runs."),
            Field(
                "workload",
                ANY_MAP,
                "Inputs with their defaults. The payload of a run overrides them.",
                rendered="start",
            ),
            Field("workbook", workbook_form(), "Named tasks that steps call with `kind: workbook`."),
            Field(
                "workflow",
                ListOf(LevelOf("step"), least=1),
                "The steps. The first one is the entry, unless `executor.spec.entry_step` names another.",
                required=True,
            ),
            Field("policy", LevelOf("rollback_policy"), "Whether a failed run rolls back its completed steps."),
        ),
    ),
    Level(
        "metadata",
        "Identity and description of a playbook.",
        (
            Field("name", Text(), "Short, readable name.", required=True),
            Field(
                "path",
                Text(),
                "Path in the catalog. Other playbooks and the CLI refer to the playbook by it.",
                required=True,
                example="examples/hello",
            ),
            Field("version", OneOf((Text(), Number())), "Version label of your choice. NoETL does not interpret it."),
            Field("description", Text(), "What the playbook does."),
            Field("labels", MapOf(Type()), "Key-value pairs for searching the catalog."),
            Field("tags", ListOf(Text()), "Keywords for searching the catalog."),
            Field("author", Text(), "Person or team that maintains the playbook."),
        ),
    ),
    Level(
        "keychain",
        "One credential that the playbook declares. Further fields depend on its kind.",
        (
            Field("name", Text(), "Name by which `auth` and `keychain.<name>` refer to the credential.", required=True),
            Field("kind", Text(), "Type of the credential.", example="oauth2"),
            Field("credential", Text(), "Name of the stored credential that provides the value.", rendered="worker"),
            Field(
                "scope",
                Text(),
                "Who shares the resolved value: `local`, `global`, `catalog` or `shared`. With `oauth2`, any other text is "
                "the OAuth scope to request.",
            ),
            Field("token_url", Text(), "With `oauth2`: URL of the token endpoint.", rendered="worker"),
            Field("ttl_seconds", Number(least=0), "How long workers may cache the resolved value, in seconds."),
            Field("auto_renew", Flag(), "Renew the value before it expires."),
        ),
        open=True,
    ),
    Level(
        "executor",
        "Where and with which settings a playbook runs.",
        (
            Field(
                "profile",
                Choice(("local", "distributed", "auto")),
                "Where the work runs.",
                default="auto",
                aliases=("kind",),
            ),
            Field("spec", LevelOf("executor_spec"), "Settings of the execution and defaults for its steps."),
            Field("requires", LevelOf("requires"), "What the server and its workers must offer before the run starts."),
        ),
    ),
    Level(
        "requires",
        "What the server and its workers must offer.",
        (
            Field("tools", ListOf(Text()), "Tool kinds that must be installed on a worker."),
            Field("features", ListOf(Text()), "Features that this version of NoETL must support."),
        ),
    ),
    Level(
        "executor_spec",
        "Settings of the execution, and defaults for every step, loop and task in it.",
        (
            Field("entry_step", Text(), "Step that runs first.", default="the first in the file"),
            Field("final_step", Text(), "Step that runs once at the end, after success and after a halt."),
            Field("no_next_is_error", Flag(), "Fail the step when no arc of its router matches.", default="false"),
            Field(
                "on_step_fail",
                Choice(("halt", "continue"), prefixes=("route_edge:",)),
                "What a failed step does when no arc handles the failure.",
                default="halt",
            ),
            Field(
                "on_parked",
                Choice(("wait", "finish", "fail")),
                "What the execution does when only parked tokens are left.",
                default="wait",
            ),
            Field("timeout_s", Number(least=0), "Timeout of the whole execution, in seconds."),
            Field(
                "max_parallel", Number(integer=True, least=1), "Maximum number of step-runs that run at the same time."
            ),
            Field("workload_schema", MapOf(Type()), "JSON Schema that the payload must satisfy."),
            Field("policy", LevelOf("executor_policy"), "Default policies of steps and loops."),
            *LAYERED,
        ),
    ),
    Level(
        "executor_policy",
        "Default policies of steps and loops.",
        (Field("failure", LevelOf("failure_policy"), "Whether a failed loop item stops the loop."),),
    ),
    Level(
        "rollback_policy",
        "Whether a failed run rolls back its completed steps.",
        (
            Field(
                "rollback",
                Choice(("on_fail", "never")),
                "`on_fail` runs the `compensate` steps of completed steps in reverse order when the run fails.",
            ),
        ),
    ),
)
