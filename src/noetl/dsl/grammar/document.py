"""Levels of the document: root, metadata, keychain, executor and rollback policy."""

from __future__ import annotations

from noetl.dsl.grammar.forms import trigger_item, workbook_form
from noetl.dsl.grammar.layered_settings import (
    ANY_MAP,
    COUNT,
    FAILURE_POLICY,
    FAILURE_SETTINGS,
    LAYERED,
    OTHER_POLICIES,
    TIME,
)
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, ListOf, Number, OneOf, Text
from noetl.schedules.spec import CATCH_UPS, OVERLAPS
from noetl.triggers.ended import STATUSES
from noetl.triggers.notification import CHANNELS, EVENTS
from noetl.triggers.subscription import AFTERS, BEGINS, FORMATS
from noetl.triggers.subscription import KINDS as SOURCES
from noetl.triggers.webhook import AUTHS, ENCODINGS

# Bounds of limits on executions, also of rendered values.
MOST_KEY = 200  # characters
MOST_COUNT = 1_000_000
LEAST_RATE = 1 / 86_400  # per second: one a day; stores have no room for any interval
_KEY = Text(length=(1, MOST_KEY))
_COUNT = Number(integer=True, least=1, most=MOST_COUNT)
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
                OneOf((ListOf(OneOf((LevelOf("keychain"), Text()))), ANY_MAP)),
                "Credentials the playbook uses.",
            ),
            Field("executor", LevelOf("executor"), "Where and with which settings the playbook runs."),
            Field("workload", ANY_MAP, "Inputs with defaults; the payload of a run overrides them.", rendered="start"),
            Field("workbook", workbook_form(), "Named tasks that steps call with `kind: workbook`."),
            Field(
                "workflow",
                ListOf(LevelOf("step"), least=1),
                "The steps; by default the first is the entry.",
                required=True,
            ),
            Field("policy", LevelOf("rollback_policy"), "Whether a failed run rolls back its completed steps."),
            Field(
                "triggers",
                ListOf(trigger_item()),
                "Schedules, webhooks, ends of executions and subscriptions that start the playbook, once a server has "
                "registered it.",
            ),
            Field(
                "notifications",
                ListOf(LevelOf("notification")),
                "Messages about executions of the playbook that need a person, once a server has registered it.",
            ),
        ),
    ),
    Level(
        "metadata",
        "Identity and description of a playbook.",
        (
            Field("name", Text(), "Short, readable name.", required=True),
            Field("path", Text(), "Path in the catalog.", required=True, example="examples/hello"),
            Field("version", OneOf((Text(), Number())), "Version label of your choice. NoETL does not interpret it."),
            Field("description", Text(), "What the playbook does."),
            Field("labels", ANY_MAP, "Key-value pairs of your choice; the catalog is searched by them."),
            Field("tags", ListOf(Text()), "Keywords of your choice; the catalog is searched by them."),
            Field("author", Text(), "Person or team that maintains the playbook."),
            Field(
                "exposes_as_mcp",
                OneOf((Flag(), ANY_MAP, Text())),
                "Whether the playbook is a tool of an MCP server. No effect yet.",
            ),
        ),
    ),
    Level(
        "keychain",
        "One credential that the playbook declares. Further fields depend on its kind.",
        (
            Field("name", Text(), "Name by which `auth` and `keychain.<name>` refer to the credential.", required=True),
            Field(
                "kind",
                Text(),
                "Type of the credential: `static`, `credential`, `bearer`, `oauth2`, `secret_manager`, `http`, "
                "`google_id_token`, or a type of stored credentials.",
                example="oauth2",
            ),
            Field("credential", Text(), "Name of the stored credential that provides the value.", rendered="worker"),
            Field(
                "scope",
                Text(),
                "Who shares an access token: `local`, this execution on one worker; `shared`, this execution on all "
                "workers; `catalog`, all executions of this playbook; `global`, all. With `oauth2`, any other text is the "
                "OAuth scope to request, and all share the token.",
            ),
            Field("token_url", Text(), "With `oauth2`: URL of the token endpoint.", rendered="worker"),
            Field(
                "ttl_seconds",
                TIME,
                "How long workers may use a token, or the value of an `http` or `secret_manager` entry, before they fetch it "
                "again, in seconds.",
            ),
            Field(
                "auto_renew",
                Flag(),
                "Whether an access token is renewed before it expires, and once after a response of 401. `false`: it is "
                "used until it expires, and a 401 fails the task.",
                default="true",
            ),
        ),
        open=True,
    ),
    Level(
        "trigger",
        "A schedule of the playbook. A server starts an execution at each of its times.",
        (
            Field(
                "schedule", Text(), "Name of the schedule, unique in the playbook.", required=True, example="nightly"
            ),
            Field("cron", Text(), "Cron expression with five fields, or six with seconds first.", example="30 2 * * *"),
            Field("every", OneOf((Text(), COUNT)), "Interval in seconds, or a text such as `15m`."),
            Field("calendar", LevelOf("trigger_calendar"), "Days and times of day."),
            Field("timezone", Text(), "IANA name of the time zone.", default="UTC", example="Europe/Vienna"),
            Field(
                "jitter",
                OneOf((Text(), Number(integer=True, least=0))),
                "Delays each start by a part of this time.",
                default="0",
            ),
            Field("catch_up", Choice(CATCH_UPS), "Which late firings start, after no server ran.", default="skip"),
            Field("overlap", Choice(OVERLAPS), "What a firing does while an execution of it runs.", default="skip"),
            Field("payload", ANY_MAP, "Values for `workload`."),
            Field("time_as", Text(), "Name in `workload` that gets the time of the firing.", example="day"),
        ),
    ),
    Level(
        "trigger_calendar",
        "Days and times of day of a schedule.",
        (
            Field("dates", ListOf(Text(), least=1), "Days: `2026-12-24`, or `12-24` for every year.", required=True),
            Field("at", ListOf(Text(), least=1), "Times of day, in quotes.", default="00:00"),
        ),
    ),
    Level(
        "trigger_webhook",
        "A webhook of the playbook. A server starts an execution for each authentic delivery.",
        (
            Field("webhook", Text(), "Name of the webhook, unique in the playbook.", required=True, example="push"),
            Field(
                "auth",
                Choice(AUTHS),
                "Proof of a delivery: a shared secret in a header, or an HMAC-SHA256 signature of its body.",
                required=True,
                example="github",
            ),
            Field(
                "credential",
                Text(),
                "Credential on the server whose value is the shared secret.",
                required=True,
                example="github_webhook",
            ),
            Field("header", Text(), "Header with the secret or the signature.", example="X-Signature"),
            Field("prefix", Text(), "Text before the signature, with `auth: hmac`.", example="sha256="),
            Field("encoding", Choice(ENCODINGS), "Encoding of the signature, with `auth: hmac`.", default="hex"),
            Field(
                "timestamp_header",
                Text(),
                "Header with the seconds since 1970, with `auth: hmac`; the signature is of `TIMESTAMP.BODY`.",
                example="X-Timestamp",
            ),
            Field("tolerance", OneOf((Text(), COUNT)), "Largest age of a timestamp.", default="5m"),
            Field(
                "dedup",
                Text(),
                "Key of the delivery; deliveries with the same key start one execution.",
                example="{{ body.event_id }}",
                rendered="server",
            ),
            Field(
                "payload",
                ANY_MAP,
                "Values for `workload`; templates read `headers`, `body`, `query` and `digest`.",
                default="body, headers and query",
                rendered="server",
            ),
            Field(
                "wait",
                OneOf((Text(), Number(integer=True, least=0))),
                "How long the answer waits for the end of the execution.",
                default="0",
            ),
        ),
    ),
    Level(
        "trigger_ended",
        "A start after other executions end. A server starts one execution for each that matches.",
        (
            Field("ended", Text(), "Name of the trigger, unique in the playbook.", required=True, example="after_load"),
            Field("path", Text(), "Path of the executions, or a pattern.", required=True, example="etl/*"),
            Field("status", ListOf(Choice(STATUSES), least=1), "How they ended.", default="any end"),
            Field("tags", ListOf(Text(), least=1), "Tags that they have, all of them."),
            Field(
                "payload",
                ANY_MAP,
                "Values for `workload`; templates read `execution`.",
                default="execution",
                rendered="server",
            ),
        ),
    ),
    Level(
        "trigger_subscription",
        "A subscription of the playbook. A server polls its source, and starts an execution for each message.",
        (
            Field(
                "subscription",
                Text(),
                "Name of the subscription, unique in the playbook.",
                required=True,
                example="orders",
            ),
            Field(
                "source",
                Choice(SOURCES),
                "Where messages come from: notifications of a channel or new rows of a table of PostgreSQL, files in a "
                "folder of the server, or items of a response over HTTP.",
                required=True,
                example="table",
            ),
            Field("auth", Text(), "Credential on the server, with `listen`, `table` and `http`.", example="orders_db"),
            Field("channel", Text(), "With `listen`: its channel. With `table`: a channel that wakes the poll."),
            Field("table", Text(), "With `table`: its name.", example="public.orders"),
            Field("key", Text(), "With `table`: column whose values are unique and grow.", example="id"),
            Field("begin", Choice(BEGINS), "With `table`: which rows come first.", default="now"),
            Field("folder", Text(), "With `folder`: whole path on the server.", example="/srv/drop"),
            Field("pattern", Text(), "With `folder`: pattern of file names.", default='"*"', example="*.json"),
            Field("after", Choice(AFTERS), "With `folder`: what becomes of a file that was taken in.", default="keep"),
            Field(
                "format",
                Choice(FORMATS),
                "With `listen` and `folder`: how the content is read. `none`: it is not.",
                default="json",
            ),
            Field("url", Text(), "With `http`: URL without a secret.", example="https://example.com/orders"),
            Field(
                "params",
                ANY_MAP,
                "With `http`: parameters of the query; templates read `cursor`. Empty ones are left out.",
                rendered="server",
            ),
            Field(
                "items",
                Text(),
                "With `http`: the list of items; templates read `body`.",
                default='"{{ body }}"',
                example="{{ body.orders }}",
                rendered="server",
            ),
            Field(
                "id",
                Text(),
                "With `http`: what identifies an item; templates read `item`.",
                example="{{ item.id }}",
                rendered="server",
            ),
            Field(
                "cursor",
                Text(),
                "With `http`: position for the next request; templates read `body`.",
                example="{{ body.next }}",
                rendered="server",
            ),
            Field(
                "every", OneOf((Text(), COUNT)), "Interval of polls in seconds, or a text such as `5m`.", default="10s"
            ),
            Field("dispatch", LevelOf("trigger_dispatch"), "Another playbook to start, instead of this one."),
            Field("paused", Flag(), "Whether a new subscription is registered paused.", default="false"),
            Field(
                "payload",
                ANY_MAP,
                "Values for `workload`; templates read `message`.",
                default="message",
                rendered="server",
            ),
        ),
    ),
    Level(
        "notification",
        "Messages about executions of the playbook. A server sends one for each event.",
        (
            Field("name", Text(), "Name of the notification, unique in the playbook.", required=True, example="ops"),
            Field("on", ListOf(Choice(EVENTS), least=1), "Events that it reports.", required=True, example="[failed]"),
            Field("channel", Choice(CHANNELS), "How the message is sent.", required=True, example="slack"),
            Field(
                "credential",
                Text(),
                "Credential on the server with the URL, the token or the mail server.",
                example="ops_slack",
            ),
            Field("url", Text(), "URL of a webhook, if it holds no secret.", example="https://example.com/alerts"),
            Field("to", ListOf(Text(), least=1), "Receivers of e-mails.", example="[ops@example.com]"),
            Field(
                "sla",
                OneOf((Text(), COUNT)),
                "Duration after which an execution has missed its SLA, for the event `sla`.",
                example="2h",
            ),
        ),
    ),
    Level(
        "executor",
        "Where and with which settings a playbook runs.",
        (
            Field(
                "profile",
                Choice(("local", "distributed", "auto"), synonyms=(("noetl_runtime", "auto"),)),
                "Where the work runs. No effect yet: `noetl run` runs it in its own process, a server on its workers. "
                "`noetl_runtime` is an older word for `auto`.",
                default="auto",
                aliases=("kind",),
            ),
            Field(
                "version",
                OneOf((Text(), Number())),
                "Version of the runtime that the playbook was written for. No effect.",
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
            *FAILURE_SETTINGS,
            Field(
                "on_parked",
                Choice(("wait", "finish", "fail")),
                "What to do when only parked tokens are left.",
                default="wait",
            ),
            Field("timeout_s", TIME, "Timeout of the whole execution, in seconds."),
            Field("max_parallel", COUNT, "Maximum number of concurrent step-runs."),
            Field("concurrency", LevelOf("concurrency"), "How many executions may run at once."),
            Field("rate", LevelOf("rate"), "How many executions may begin per second."),
            Field(
                "weight",
                Number(integer=True, least=1, most=1_000),
                "Share of the workers while work of several playbooks waits.",
                default="1",
            ),
            Field("workload_schema", ANY_MAP, "JSON Schema that the payload must satisfy, `format` included."),
            Field("policy", LevelOf("executor_policy"), "Default policies of steps and loops."),
            *LAYERED,
        ),
    ),
    Level(
        "concurrency",
        "How many executions may run at once. Executions of all playbooks with the same key count.",
        (
            Field(
                "key",
                _KEY,
                "What is counted, often with a value of the workload.",
                default="the playbook's path",
                rendered="server",
            ),
            Field("limit", _COUNT, "Maximum number of executions at once.", default="1"),
            Field(
                "on_limit",
                Choice(("queue", "cancel_running", "reject")),
                "What a further execution does: it waits, replaces the oldest one, or is refused.",
                default="queue",
            ),
        ),
    ),
    Level(
        "rate",
        "How many executions may begin per second. Further ones wait.",
        (
            Field(
                "key",
                _KEY,
                "What is counted, often with a value of the workload.",
                default="the playbook's path",
                rendered="server",
            ),
            Field(
                "per_second",
                Number(least=LEAST_RATE, finite=True),
                "Executions per second; 0.1 is one in ten seconds.",
                required=True,
            ),
            Field("burst", _COUNT, "How many may begin at once after a pause.", default="1"),
        ),
    ),
    Level("executor_policy", "Default policies of steps and loops.", (FAILURE_POLICY, *OTHER_POLICIES)),
    Level(
        "rollback_policy",
        "Whether a failed run rolls back its completed steps.",
        (Field("rollback", Choice(("on_fail", "never")), "`on_fail`: run `compensate` steps in reverse order."),),
    ),
)
