"""Fields of the document itself: root, metadata, keychain, executor, policy."""

from __future__ import annotations

from noetl.dsl.grammar.forms import workbook_form
from noetl.dsl.grammar.layered import ANY_MAP, LAYERED
from noetl.dsl.types import Choice, Field, Flag, Level, LevelOf, ListOf, MapOf, Number, OneOf, Text, Type

API_VERSIONS = ("noetl.io/v1", "noetl.io/v2", "noetl.io/v10")

DOCUMENT_LEVELS: tuple[Level, ...] = (
    Level(
        "playbook",
        "A playbook: its inputs, its credentials, its reusable tasks and its workflow.",
        (
            Field("apiVersion", Choice(API_VERSIONS), "Which version of the language this is.", required=True),
            Field("kind", Choice(("Playbook",)), "Always `Playbook`.", required=True),
            Field("metadata", LevelOf("metadata"), "Who the playbook is.", required=True),
            Field(
                "keychain", OneOf((ListOf(OneOf((LevelOf("keychain"), Text()))), MapOf(Type()))), "Credentials it uses."
            ),
            Field("executor", LevelOf("executor"), "How it wants to be run."),
            Field("workload", ANY_MAP, "Its inputs with their defaults; a run's payload wins.", rendered="start"),
            Field("workbook", workbook_form(), "Named tasks to call."),
            Field("workflow", ListOf(LevelOf("step"), least=1), "The steps; the first is the entry.", required=True),
            Field("policy", LevelOf("rollback_policy"), "What happens to finished work when the run fails."),
        ),
    ),
    Level(
        "metadata",
        "Names and descriptions of a playbook.",
        (
            Field("name", Text(), "A short name for people.", required=True),
            Field("path", Text(), "Its place in the catalog.", required=True, example="examples/hello"),
            Field("version", OneOf((Text(), Number())), "A version of your own choice."),
            Field("description", Text(), "What it is for."),
            Field("labels", MapOf(Type()), "Free key-value pairs to search by."),
            Field("tags", ListOf(Text()), "Free words to search by."),
            Field("author", Text(), "Who to ask."),
        ),
    ),
    Level(
        "keychain",
        "One credential that the playbook declares; the fields beside the name belong to its kind.",
        (
            Field("name", Text(), "How `auth` and `keychain.<name>` refer to it.", required=True),
            Field("kind", Text(), "What sort of credential it is.", example="oauth2"),
            Field("credential", Text(), "The stored credential behind it.", rendered="worker"),
            Field(
                "scope",
                Text(),
                "Who shares the resolved value (`local`, `global`, `catalog`, `shared`); with `oauth2`, any other text is "
                "what the token is asked for.",
            ),
            Field("token_url", Text(), "With `oauth2`: where the token is asked for.", rendered="worker"),
            Field("ttl_seconds", Number(least=0), "How long the resolved value may be kept."),
            Field("auto_renew", Flag(), "Renew it before it ends."),
        ),
        open=True,
    ),
    Level(
        "executor",
        "How the playbook wants to be run.",
        (
            Field(
                "profile",
                Choice(("local", "distributed", "auto")),
                "Where the work runs.",
                default="auto",
                aliases=("kind",),
            ),
            Field("spec", LevelOf("executor_spec"), "Settings for the whole execution and defaults for its steps."),
            Field("requires", LevelOf("requires"), "What must be there before the run starts."),
        ),
    ),
    Level(
        "requires",
        "What a server or worker must offer.",
        (
            Field("tools", ListOf(Text()), "Tool kinds."),
            Field("features", ListOf(Text()), "Features by name."),
        ),
    ),
    Level(
        "executor_spec",
        "Settings for the whole execution, and defaults for every step, loop and task below.",
        (
            Field("entry_step", Text(), "The step that runs first.", default="the first in the file"),
            Field("final_step", Text(), "A step that runs once at the end, after success and after a halt."),
            Field("no_next_is_error", Flag(), "Whether a router that matches nothing is a failure.", default="false"),
            Field(
                "on_step_fail",
                Choice(("halt", "continue"), prefixes=("route_edge:",)),
                "What a failure that no arc takes does.",
                default="halt",
            ),
            Field(
                "on_parked",
                Choice(("wait", "finish", "fail")),
                "What follows when only parked tokens are left.",
                default="wait",
            ),
            Field("timeout_s", Number(least=0), "How long the whole execution may take, in seconds."),
            Field("max_parallel", Number(integer=True, least=1), "Step-runs in flight at once."),
            Field("workload_schema", MapOf(Type()), "A JSON Schema that the payload must satisfy."),
            Field("policy", LevelOf("executor_policy"), "Defaults for the policies of steps and loops."),
            *LAYERED,
        ),
    ),
    Level(
        "executor_policy",
        "Defaults for the policies of steps and loops.",
        (Field("failure", LevelOf("failure_policy"), "What a failed loop item does to the rest."),),
    ),
    Level(
        "rollback_policy",
        "What happens to finished work when the run fails.",
        (
            Field(
                "rollback", Choice(("on_fail", "never")), "Run the `compensate` steps of finished work, newest first."
            ),
        ),
    ),
)
