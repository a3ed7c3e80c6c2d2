"""Settings of a process: name, type, default and description of each.

Command options override environment variables, which override the configuration file (`configuration`). Tested in
tests/unit/test_settings.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from msgspec import Struct

from noetl.model.errors import CredentialUnavailable, InvalidInput, InvalidSetting
from noetl.model.letters import NO_LETTERS
from noetl.model.work import PLAYBOOK_LIMITS, WORK_LIMITS, kept_slots
from noetl.trace_context import TRACING

PREFIX = "NOETL_"
HOME = "NOETL_HOME"
CONFIG = "NOETL_CONFIG"
DB_URL = "NOETL_DB_URL"
CAPACITY = "NOETL_CAPACITY"
LEASE_SECONDS = "NOETL_LEASE_SECONDS"
MAX_ATTEMPTS = "NOETL_MAX_ATTEMPTS"
COLLECT_SECONDS = "NOETL_COLLECT_SECONDS"
LIVENESS_SECONDS = "NOETL_LIVENESS_SECONDS"
QUEUE_AGEING_SECONDS = "NOETL_QUEUE_AGEING_SECONDS"
QUEUE_KIND_LIMITS = "NOETL_QUEUE_KIND_LIMITS"
QUEUE_PLAYBOOK_LIMITS = "NOETL_QUEUE_PLAYBOOK_LIMITS"
QUEUE_POOL_LIMITS = "NOETL_QUEUE_POOL_LIMITS"
RESULT_DAYS = "NOETL_RESULT_DAYS"
EXECUTION_DAYS = "NOETL_EXECUTION_DAYS"
DLQ_RETENTION_DAYS = "NOETL_DLQ_RETENTION_DAYS"
DLQ_ENABLED = "NOETL_DLQ_ENABLED"
DLQ_TOPIC = "NOETL_DLQ_TOPIC"
CREDENTIAL = "NOETL_CREDENTIAL_"
SECRETS_FOLDERS = "NOETL_SECRETS_FOLDERS"
KEYCHAIN_REFRESH = "NOETL_KEYCHAIN_REFRESH_SECONDS"
LOG_LEVEL = "NOETL_LOG_LEVEL"
LOGGING_LEVEL = "NOETL_LOGGING_LEVEL"
LOGGING_FORMAT = "NOETL_LOGGING_FORMAT"
METRICS_ENABLED = "NOETL_METRICS_ENABLED"
METRICS_HOST = "NOETL_METRICS_HOST"
METRICS_PORT = "NOETL_METRICS_PORT"
METRICS_PATH = "NOETL_METRICS_PATH"
METRICS_PUSH_URL = "NOETL_METRICS_PUSH_URL"
METRICS_PUSH_SECONDS = "NOETL_METRICS_PUSH_SECONDS"
ROUTE_AFTER_ALL_SINKS = "NOETL_ORCHESTRATOR_ROUTE_AFTER_ALL_SINKS"
RENDER_ARGS_SERVER_SIDE = "NOETL_ORCHESTRATOR_RENDER_ARGS_SERVER_SIDE"
TRACING_ENABLED = "NOETL_TRACING_ENABLED"
TRACING_SAMPLE_RATE = "NOETL_TRACING_SAMPLE_RATE"
TRACING_ON_ERROR = "NOETL_TRACING_FORCE_SAMPLE_ON_ERROR"
TRACING_ON_SLOW = "NOETL_TRACING_FORCE_SAMPLE_ON_SLOW"
TRACING_URL = "NOETL_TRACING_URL"
TRACING_EXPORTER = "NOETL_TRACING_EXPORTER"
TRACING_ENDPOINT = "NOETL_TRACING_ENDPOINT"
TRACING_HEADERS = "NOETL_TRACING_HEADERS"
REDACT_KEYS = "NOETL_LOGGING_REDACT_KEYS"
HOST = "NOETL_HOST"
PORT = "NOETL_PORT"
CHECK_TIMEOUT = "NOETL_CHECK_SECONDS"
AUTH = "NOETL_AUTH"
ALLOWED_HOSTS = "NOETL_ALLOWED_HOSTS"
ALLOWED_ORIGINS = "NOETL_ALLOWED_ORIGINS"
SESSION_HOURS = "NOETL_SESSION_HOURS"
OIDC_ISSUER = "NOETL_OIDC_ISSUER"
OIDC_CLIENT_ID = "NOETL_OIDC_CLIENT_ID"
OIDC_CLIENT_SECRET = "NOETL_OIDC_CLIENT_SECRET"
OIDC_SCOPES = "NOETL_OIDC_SCOPES"
OIDC_NAME_CLAIM = "NOETL_OIDC_NAME_CLAIM"
OIDC_GROUPS_CLAIM = "NOETL_OIDC_GROUPS_CLAIM"
OIDC_ROLES = "NOETL_OIDC_ROLES"
OIDC_REDIRECT_URL = "NOETL_OIDC_REDIRECT_URL"
HTTP_CONNECTIONS = "NOETL_HTTP_MAX_CONNECTIONS"
HTTP_PER_ADDRESS = "NOETL_HTTP_MAX_CONNECTIONS_PER_ADDRESS"
HTTP_HEADER_KB = "NOETL_HTTP_MAX_HEADER_KB"
HTTP_HEADER_SECONDS = "NOETL_HTTP_HEADER_SECONDS"
HTTP_BODY_SECONDS = "NOETL_HTTP_BODY_SECONDS"
HTTP_READER_SECONDS = "NOETL_HTTP_READER_SECONDS"
HTTP_IDLE_SECONDS = "NOETL_HTTP_IDLE_SECONDS"
HTTP_STREAMS = "NOETL_HTTP_MAX_STREAMS"
HTTP_STREAMS_PER_TOKEN = "NOETL_HTTP_MAX_STREAMS_PER_TOKEN"
HTTP_ANSWERS_MB = "NOETL_HTTP_MAX_ANSWERS_MB"
WEBHOOK_KB = "NOETL_WEBHOOK_MAX_KB"
SUBSCRIPTION_FOLDERS = "NOETL_SUBSCRIPTION_FOLDERS"
PUBLIC_URL = "NOETL_PUBLIC_URL"
ENCRYPTION_KEY = "NOETL_ENCRYPTION_KEY"
SERVER_URL = "NOETL_SERVER_URL"
TOKEN = "NOETL_TOKEN"
FILE = "_FILE"  # NOETL_TOKEN_FILE names a file that holds NOETL_TOKEN
WORKER_ID = "NOETL_WORKER_ID"
IMAGE = "NOETL_IMAGE"
WORKER_CONCURRENCY = "NOETL_WORKER_CONCURRENCY"
QUEUE_POLL_INTERVAL = "NOETL_QUEUE_POLL_INTERVAL"
SANDBOX = "NOETL_SANDBOX"
SANDBOX_WRITE = "NOETL_SANDBOX_WRITE"
TASK_MEMORY_MB = "NOETL_TASK_MEMORY_MB"
TASK_PROCESSES = "NOETL_TASK_PROCESSES"
TASK_OPEN_FILES = "NOETL_TASK_OPEN_FILES"
TASK_DISK_MB = "NOETL_TASK_DISK_MB"
TASK_CPU_SECONDS = "NOETL_TASK_CPU_SECONDS"
EGRESS_ALLOW = "NOETL_EGRESS_ALLOW"
EGRESS_DENY = "NOETL_EGRESS_DENY"
TASK_NETWORK = "NOETL_TASK_NETWORK"
EGRESS_PRIVATE = "NOETL_EGRESS_PRIVATE"
OUTBOX_URL = "NOETL_OUTBOX_URL"
OUTBOX_MAX_ATTEMPTS = "NOETL_OUTBOX_MAX_ATTEMPTS"
OUTBOX_BASE_MS = "NOETL_OUTBOX_BASE_MS"
OUTBOX_MAX_MS = "NOETL_OUTBOX_MAX_MS"
OUTBOX_DAYS = "NOETL_OUTBOX_DAYS"
OUTBOX_TIMEOUT_MS = "NOETL_OUTBOX_TIMEOUT_MS"
EXPORT_CLICKHOUSE_URL = "NOETL_EXPORT_CLICKHOUSE_URL"
EXPORT_CLICKHOUSE_TABLE = "NOETL_EXPORT_CLICKHOUSE_TABLE"
EXPORT_PARQUET_FOLDER = "NOETL_EXPORT_PARQUET_FOLDER"
EXPORT_OTLP_URL = "NOETL_EXPORT_OTLP_URL"
EXPORT_OTLP_HEADERS = "NOETL_EXPORT_OTLP_HEADERS"
EXPORT_OPENLINEAGE_URL = "NOETL_EXPORT_OPENLINEAGE_URL"
EXPORT_OPENLINEAGE_NAMESPACE = "NOETL_EXPORT_OPENLINEAGE_NAMESPACE"
EXPORT_OPENLINEAGE_HEADERS = "NOETL_EXPORT_OPENLINEAGE_HEADERS"
IN_FILES = (  # settings that may be in a file
    TOKEN, DB_URL, ENCRYPTION_KEY, OIDC_CLIENT_SECRET, EXPORT_CLICKHOUSE_URL, EXPORT_OTLP_HEADERS,
    EXPORT_OPENLINEAGE_HEADERS, TRACING_HEADERS,
)  # fmt: skip
# First words of settings that form a section of the configuration file: `metrics: {port: 9090}`.
GROUPS = (
    "orchestrator",
    "dlq",
    "tracing",
    "metrics",
    "logging",
    "oidc",
    "http",
    "outbox",
    "export",
    "egress",
    "queue",
    "task",
)
# Settings for executions: see `configuration`.
SECTIONS = tuple(f"NOETL_{name}_" for name in ("RETRIES", "TIMEOUTS", "LIMITS", "RESULT", "POLICIES", "ORCHESTRATOR"))
_CAPACITY = 32
_LEASE_SECONDS = 10
_MAX_ATTEMPTS = 5
_POLL_S = 10
_GRACE_S = 30
_COLLECT_SECONDS = 3600
_LIVENESS_SECONDS = 10
_QUEUE_AGEING_SECONDS = 60
_MOST_LIMIT = 1_000_000
_MOST_PORT = 65_535
DEFAULT_POOL = "(default)"
_RESULT_DAYS = 30
_DLQ_RETENTION_DAYS = 30
_REFRESH_S = 30
_TASK_MEMORY_MB = 4096
_TASK_PROCESSES = 256
_TASK_OPEN_FILES = 1024
_TASK_DISK_MB = 4096
_TASK_CPU_SECONDS = 3600
CHECK_SECONDS = 1.25
_HOST = "127.0.0.1"
_PORT = 8082
LEVELS = ("debug", "info", "warning", "error")  # of log lines
_DATABASES = ("postgresql://", "postgres://")
_ALLOWED: dict[str, bool | None] = {"auto": None, "allow": True, "deny": False}
_ONLY_TRUE = {
    ROUTE_AFTER_ALL_SINKS: "Sinks are tasks of the step's pipeline, and arcs read its result. To wait for none, store in a step of its own on a second arc.",
    RENDER_ARGS_SERVER_SIDE: "They are recorded with the token, so that every worker reads the same values. Inputs of tools are rendered on the worker, where credentials are.",
}
_secret_files: set[str] = set()  # that this process has read; a sandbox hides them from tasks
# environment variable → (default, meaning); docs/reference/settings.md is generated from it
VARIABLES: dict[str, tuple[str, str]] = {
    HOME: ("./.noetl", "Folder of the store `noetl.db` and its files. `--store PATH` overrides it."),
    CONFIG: (
        "noetl.yaml in that folder",
        "Configuration file. The environment overrides it. Names are in lower case without `NOETL_`, also as nested maps.",
    ),
    DB_URL: (
        "",
        "PostgreSQL database to use as the store: `postgresql://user:password@host/name`. `--store` overrides it.",
    ),
    DB_URL + FILE: ("", "File that holds NOETL_DB_URL, so that its password is in no command line or environment."),
    CAPACITY: (
        str(_CAPACITY),
        "Maximum number of tasks that a worker runs at once, and default width of parallel loops.",
    ),
    LEASE_SECONDS: (
        str(_LEASE_SECONDS),
        "How long a lease lasts without a heartbeat, in seconds. Workers send one every second.",
    ),
    MAX_ATTEMPTS: (
        str(_MAX_ATTEMPTS),
        "How often work is leased to a worker before it is given up and its step fails.",
    ),
    COLLECT_SECONDS: (
        str(_COLLECT_SECONDS),
        "Interval at which a server removes stored results that are no longer needed, in seconds. 0: never; use `noetl admin gc`.",
    ),
    LIVENESS_SECONDS: (
        str(_LIVENESS_SECONDS),
        "Interval at which a server repairs executions that are stuck because rows were lost, in seconds. 0: never.",
    ),
    QUEUE_AGEING_SECONDS: (
        str(_QUEUE_AGEING_SECONDS),
        "Time in seconds after which waiting work rises by one priority, and again after each such time, up to the highest priority that is queued in its pool. 0: never.",
    ),
    QUEUE_KIND_LIMITS: (
        "",
        "How much work with a task of a kind runs at once, on all workers: `http=20,postgres=4`. Work is a step, or a range of loop items.",
    ),
    QUEUE_PLAYBOOK_LIMITS: (
        "",
        "How many executions of the playbooks whose path matches a pattern run at once, beside the playbooks' own limits: `etl/*=10,reports/daily=1`. The first pattern that matches counts.",
    ),
    QUEUE_POOL_LIMITS: (
        "",
        "How much work of a pool runs at once, on all workers: `gpu=2,(default)=50`.",
    ),
    EXECUTION_DAYS: (
        "0",
        "How long executions are kept after they ended, in days; a server removes older ones every hour. 0: for ever.",
    ),
    RESULT_DAYS: (str(_RESULT_DAYS), "How long stored results are kept after their execution ended, in days."),
    DLQ_RETENTION_DAYS: (
        str(_DLQ_RETENTION_DAYS),
        "How long dead letters are kept after they were replayed or discarded, in days. A server removes older ones every hour, `noetl admin prune` at once.",
    ),
    DLQ_ENABLED: ("true", "Whether failed work becomes a dead letter. `false`: only the event log has it."),
    DLQ_TOPIC: (
        "",
        "Topic under which each new dead letter is also sent to `NOETL_OUTBOX_URL`, through the outbox. Empty: not sent.",
    ),
    LOGGING_LEVEL: (
        "error; `serve`, `up` and `worker`: info, and warning for log events",
        "Level from which on lines are logged on stderr: debug, info, warning or error.",
    ),
    LOG_LEVEL: ("", "Other name of NOETL_LOGGING_LEVEL, which overrides it."),
    LOGGING_FORMAT: (
        "console",
        "Form of log lines: `console` for terminals, where a server's first lines are read, or `json`, one object per line, for collectors.",
    ),
    METRICS_ENABLED: ("true", "Whether servers and workers expose metrics."),
    METRICS_HOST: (_HOST, "Address that metrics are exposed on, if they have a port of their own."),
    METRICS_PORT: (
        "0",
        "Port of its own for metrics, without a token, on servers and workers. `0`: none, since several workers may share a machine; a server has them at `/metrics`, for the role `viewer`.",
    ),
    METRICS_PATH: ("/metrics", "Path of the metrics on their own port."),
    METRICS_PUSH_URL: (
        "",
        "Address of a Pushgateway of Prometheus that servers and workers push their metrics to: `http://host:9091`. Empty: none.",
    ),
    METRICS_PUSH_SECONDS: ("15", "Interval between two pushes, in seconds."),
    ROUTE_AFTER_ALL_SINKS: (
        "true",
        f"Whether arcs are evaluated after all storing tasks (sinks) of a step have finished; only `true`. {_ONLY_TRUE[ROUTE_AFTER_ALL_SINKS]}",
    ),
    RENDER_ARGS_SERVER_SIDE: (
        "true",
        f"Whether the server renders the `args` of arcs before it schedules a step; only `true`. {_ONLY_TRUE[RENDER_ARGS_SERVER_SIDE]}",
    ),
    TRACING_ENABLED: ("true", "Whether traces are recorded and sent to `NOETL_TRACING_ENDPOINT`."),
    TRACING_SAMPLE_RATE: (
        "0.1",
        "Share of the executions whose trace is sent, from 0 to 1. Those with `workload.trace: true` or `--trace` are sent in any case.",
    ),
    TRACING_ON_ERROR: ("true", "Whether the trace of an execution that fails is sent in any case."),
    TRACING_ON_SLOW: (
        "true",
        "Whether the trace of an execution is sent in any case that takes longer than 99 of 100 of its playbook.",
    ),
    TRACING_URL: (
        "",
        "Where people see a trace: `https://jaeger.example.com/trace/{trace_id}`. The API, `noetl trace` and the web UI link to it.",
    ),
    TRACING_EXPORTER: ("otlp", "Protocol of the traces: `otlp`, OpenTelemetry over HTTP."),
    TRACING_ENDPOINT: (
        "",
        "Base URL of the receiver of traces, such as `http://jaeger:4318`. Empty: traces are not sent, because no address suits every machine.",
    ),
    TRACING_HEADERS: (
        "",
        "Headers of requests to this receiver, such as `Authorization=Bearer …`, separated by commas.",
    ),
    TRACING_HEADERS + FILE: ("", "File that holds NOETL_TRACING_HEADERS."),
    REDACT_KEYS: (
        "",
        "Names of keys whose values are masked for every reader, besides the usual ones such as `password`; separated by commas. In the file: `logging: {redact_keys: […]}`.",
    ),
    HOST: (_HOST, "Address that the server listens on. Other addresses than loopback require API tokens."),
    PORT: (str(_PORT), "Port that the server listens on."),
    AUTH: (
        "auto",
        "What the server requires: `token`, API tokens of `noetl token create`; `none`, nothing, on loopback only; `auto`, API tokens, and on loopback also a token that it makes for the commands of its user.",
    ),
    CHECK_TIMEOUT: (
        f"{CHECK_SECONDS:g}",
        "Processor time in seconds that a server spends on checking one playbook, or on rendering the templates of one request, before it refuses it.",
    ),
    ALLOWED_HOSTS: (
        "",
        "Host names that clients may use for the server, separated by commas. Empty: its own names on loopback, any name elsewhere.",
    ),
    ALLOWED_ORIGINS: ("", "Other origins whose web pages may call the server, separated by commas."),
    SESSION_HOURS: ("12", "Lifetime of the session of a user who has signed in, in hours."),
    OIDC_ISSUER: (
        "",
        "Address of the OpenID Connect provider that users sign in with, as it names itself. Empty: none.",
    ),
    OIDC_CLIENT_ID: ("", "Client of this server at the provider."),
    OIDC_CLIENT_SECRET: ("", "Secret of that client; empty for a public client."),
    OIDC_CLIENT_SECRET + FILE: ("", "File that holds NOETL_OIDC_CLIENT_SECRET."),
    OIDC_SCOPES: ("openid profile email", "Scopes to ask the provider for, separated by spaces."),
    OIDC_NAME_CLAIM: ("preferred_username", "Claim of the ID token that is the name of the user."),
    OIDC_GROUPS_CLAIM: ("groups", "Claim of the ID token that lists the groups of the user."),
    OIDC_ROLES: (
        "",
        "Roles of the provider's groups, separated by commas: `admins=admin,team-a=editor@team-a/,*=viewer`. `*` is every user.",
    ),
    OIDC_REDIRECT_URL: (
        "",
        "Address of /api/session/oidc/callback as the provider knows it. Empty: made from the host of the request.",
    ),
    HTTP_CONNECTIONS: (
        "4000",
        "Maximum number of open connections, and never more than the limit of open files allows. At the limit an idle one is closed for a new one; if none is idle, the new one gets 503.",
    ),
    HTTP_PER_ADDRESS: (
        "half of them",
        "Maximum number of open connections from one address (IPv6: one /64 network). Behind a proxy that all clients share: the value of NOETL_HTTP_MAX_CONNECTIONS.",
    ),
    HTTP_HEADER_KB: (
        "32",
        "Maximum size of a request's path and headers, in KiB; half of it for the path with its query.",
    ),
    HTTP_HEADER_SECONDS: (
        "10",
        "How long a client may take to send the path and the headers of a request, in seconds.",
    ),
    HTTP_BODY_SECONDS: (
        "30",
        "How long a client may take to send the body of a request, in seconds; one more for each KiB that arrived.",
    ),
    HTTP_READER_SECONDS: (
        "30",
        "How long a client that cannot take more data may read less than 1 KiB per second before it is disconnected, in seconds.",
    ),
    HTTP_IDLE_SECONDS: ("75", "How long a connection may be idle between two requests, in seconds."),
    HTTP_STREAMS: ("500", "Maximum number of open event streams."),
    HTTP_STREAMS_PER_TOKEN: ("100", "Maximum number of open event streams of one API token."),
    HTTP_ANSWERS_MB: (
        "256",
        "Maximum size of all large answers that clients are reading, in MiB; half of it for one API token. A stored result counts 4 or less.",
    ),
    WEBHOOK_KB: (
        "1024",
        "Maximum size of the body of a webhook's delivery, and of a message of a subscription, in KiB.",
    ),
    SUBSCRIPTION_FOLDERS: (
        "",
        "Folders that subscriptions may read files from, with what is in them, separated by commas. Empty: none.",
    ),
    PUBLIC_URL: (
        "",
        "URL under which people reach the server, such as `https://noetl.example.com`: links in notifications begin with it. Empty: they name a command.",
    ),
    ENCRYPTION_KEY: (
        "",
        "Key that encrypts credentials: 32 bytes in URL-safe base64; several separated by commas, newest first. Empty: a key file beside the store.",
    ),
    ENCRYPTION_KEY + FILE: ("", "File that holds NOETL_ENCRYPTION_KEY."),
    SERVER_URL: ("", "Server of workers and commands: `http://host:8082`; several separated by commas."),
    TOKEN: ("", "API token that workers and commands send to the server."),
    TOKEN + FILE: ("", "File that holds NOETL_TOKEN, so that the token is in no command line or environment."),
    IMAGE: ("", "Container image that a worker runs in; it is recorded with each step-run, beside versions."),
    WORKER_ID: ("host:process", "Name of a worker; it must be unique among running workers."),
    WORKER_CONCURRENCY: (
        "",
        "Maximum number of tasks that `noetl worker` runs at once. Empty: the value of NOETL_CAPACITY.",
    ),
    QUEUE_POLL_INTERVAL: (str(_POLL_S), "How long a worker's poll for work waits at the server, in seconds."),
    SANDBOX: (
        "auto",
        "Sandbox of tasks: `none`, `landlock`, `bwrap`, or `auto`: the strongest that the machine has if the server requires tokens, else none. In a sandbox they write only to a temporary folder and cannot read the worker's own files.",
    ),
    SANDBOX_WRITE: ("", "Folders that tasks in a sandbox may write to as well, separated by commas."),
    TASK_MEMORY_MB: (
        str(_TASK_MEMORY_MB),
        "Maximum memory for the data of each task process (`python`, `shell`, `script`), in MiB. 0: no limit.",
    ),
    TASK_PROCESSES: (
        f"{_TASK_PROCESSES} in a sandbox",
        "Maximum number of processes and threads of a task. 0: no limit.",
    ),
    TASK_OPEN_FILES: (f"{_TASK_OPEN_FILES} in a sandbox", "Maximum number of open files of each task process."),
    TASK_DISK_MB: (
        f"{_TASK_DISK_MB} in a sandbox",
        "Maximum size of a file that a task writes, and of its temporary folder, in MiB. 0: no limit.",
    ),
    TASK_CPU_SECONDS: (
        f"{_TASK_CPU_SECONDS} in a sandbox",
        "Maximum processor time of each task process, in seconds. 0: no limit.",
    ),
    EGRESS_ALLOW: (
        "",
        "Hosts that tasks may connect to (`http`, `postgres`, `transfer`, scripts, outbox): names (`a.example.com`, `*.example.com`), addresses or networks, separated by commas. Empty: all.",
    ),
    EGRESS_DENY: ("", "Hosts that tasks must not connect to, in the same form. Overrides NOETL_EGRESS_ALLOW."),
    EGRESS_PRIVATE: (
        "auto",
        "Whether tasks may connect to this machine and private networks: `allow`, `deny`, `auto` (denied if the server requires tokens), or the hosts that are allowed, in the same form.",
    ),
    TASK_NETWORK: (
        "auto",
        "Whether processes of tasks have a network: `allow`, `deny`, or `auto` (denied if the server requires tokens). Egress rules do not hold for them.",
    ),
    OUTBOX_URL: ("", "Base URL of outbox messages without an address; the topic is appended after a slash."),
    OUTBOX_MAX_ATTEMPTS: ("20", "How often delivery of an outbox message is tried before it is dead."),
    OUTBOX_BASE_MS: ("1000", "Delay after the first failed delivery, in milliseconds; it doubles each time."),
    OUTBOX_MAX_MS: ("300000", "Maximum delay between two deliveries of a message, in milliseconds."),
    OUTBOX_TIMEOUT_MS: ("30000", "Timeout of one delivery, in milliseconds."),
    OUTBOX_DAYS: ("7", "How long messages are kept after they were delivered or discarded, in days."),
    EXPORT_CLICKHOUSE_URL: (
        "",
        "Address of ClickHouse's HTTP interface that the event log is exported to: `http://user:password@host:8123`.",
    ),
    EXPORT_CLICKHOUSE_URL + FILE: ("", "File that holds NOETL_EXPORT_CLICKHOUSE_URL."),
    EXPORT_CLICKHOUSE_TABLE: (
        "observability.noetl_events",
        "Table of the exported events. It is created if it is missing.",
    ),
    EXPORT_PARQUET_FOLDER: ("", "Folder that the event log is exported to, as Parquet files by day."),
    EXPORT_OTLP_URL: (
        "",
        "Address of an OpenTelemetry collector that the event log is exported to as log records, by OTLP over HTTP: `http://host:4318`.",
    ),
    EXPORT_OTLP_HEADERS: ("", "Headers of these requests, such as `Authorization=Bearer …`, separated by commas."),
    EXPORT_OTLP_HEADERS + FILE: ("", "File that holds NOETL_EXPORT_OTLP_HEADERS."),
    EXPORT_OPENLINEAGE_URL: (
        "",
        "Address of an OpenLineage server that executions and step-runs are exported to as runs: `http://host:5000`.",
    ),
    EXPORT_OPENLINEAGE_NAMESPACE: ("noetl", "Namespace of the jobs in OpenLineage."),
    EXPORT_OPENLINEAGE_HEADERS: (
        "",
        "Headers of these requests, such as `Authorization=Bearer …`, separated by commas.",
    ),
    EXPORT_OPENLINEAGE_HEADERS + FILE: ("", "File that holds NOETL_EXPORT_OPENLINEAGE_HEADERS."),
    SECRETS_FOLDERS: (
        "/run/secrets",
        "Folders of secrets that Docker or Kubernetes mounts as files, separated by commas; `provider: file` reads them.",
    ),
    KEYCHAIN_REFRESH: (
        str(_REFRESH_S),
        "How long before its end a worker renews an access token of `keychain`, in seconds. A token that lives less than twice as long is renewed after nine tenths of its life.",
    ),
    CREDENTIAL + "NAME": (
        "",
        "Credential: `auth: pg_main` reads `NOETL_CREDENTIAL_PG_MAIN`, a JSON object, a URL or a token.",
    ),
}


class OutboxSettings(Struct, frozen=True):
    """How outbox messages are delivered."""

    url: str = ""  # of messages without an address
    max_attempts: int = 20
    base_ms: int = 1_000
    max_ms: int = 300_000
    days: int = 7  # retention after delivery
    timeout_ms: int = 30_000  # of one attempt


class ExportSettings(Struct, frozen=True):
    """Where servers export the event log to; an empty address: not there."""

    clickhouse_url: str = ""
    clickhouse_table: str = "observability.noetl_events"
    parquet_folder: str = ""
    otlp_url: str = ""
    otlp_headers: Mapping[str, str] = {}
    openlineage_url: str = ""
    openlineage_namespace: str = "noetl"
    openlineage_headers: Mapping[str, str] = {}


class MetricsSettings(Struct, frozen=True):
    """Where metrics are exposed besides `/metrics` of a server."""

    enabled: bool = True
    host: str = _HOST
    port: int = 0  # none
    path: str = "/metrics"
    push_url: str = ""  # of a gateway
    push_s: int = 15

    @property
    def own_port(self) -> int:
        """The port of their own; 0: none."""
        return self.port if self.enabled else 0


class TracingSettings(Struct, frozen=True):
    """Which traces are sent, and where to."""

    enabled: bool = True
    sample_rate: float = 0.1
    on_error: bool = True  # the traces of executions that fail, whatever the rate
    exporter: str = "otlp"
    endpoint: str = ""  # base URL; empty: nowhere
    on_slow: bool = True  # the traces of slow executions too
    url: str = ""  # where people see a trace, with `{trace_id}`
    headers: Mapping[str, str] = {}  # of requests to the endpoint

    @property
    def is_on(self) -> bool:
        """Whether traces are sent."""
        return self.enabled and bool(self.endpoint)

    @property
    def of_executions(self) -> dict[str, Any]:
        """What decisions need to know."""
        return {"sample_rate": self.sample_rate}

    def link(self, trace_id: str) -> str:
        """Return where people see a trace; empty if that is not set."""
        return self.url.replace("{trace_id}", trace_id)


class Settings(Struct, frozen=True):
    """Settings of one process."""

    store: Path  # the SQLite file; with a database, its folder has the local files
    capacity: int = _CAPACITY  # tasks that a worker runs at once
    lease_ms: int = _LEASE_SECONDS * 1000  # without a heartbeat
    max_attempts: int = _MAX_ATTEMPTS  # leases of a piece of work before it is given up
    liveness_s: int = _LIVENESS_SECONDS  # interval of the reconciler; 0: never
    ageing_s: int = _QUEUE_AGEING_SECONDS  # after which waiting work rises by one priority; 0: never
    playbook_limits: Mapping[str, int] = {}  # how many executions run at once, by pattern of paths
    work_limits: Mapping[str, int] = {}  # how much work is leased at once, by `kind http`, `pool gpu`
    collect_s: int = _COLLECT_SECONDS  # interval of result garbage collection; 0: never
    execution_days: int = 0  # retention of ended executions; 0: for ever
    result_days: int = _RESULT_DAYS  # retention of stored results after their execution
    dlq_days: int = _DLQ_RETENTION_DAYS  # retention of closed dead letters
    dlq_enabled: bool = True  # whether failed work becomes a dead letter
    dlq_topic: str = ""  # under which dead letters are sent to `outbox.url`
    database: str = ""  # URL of the PostgreSQL store; empty: SQLite
    sandbox: str = "none"  # of tasks
    sandbox_write: tuple[str, ...] = ()  # folders that tasks in a sandbox may write to
    subscription_folders: tuple[str, ...] = ()  # folders that subscriptions may read
    hidden: tuple[str, ...] = ()  # files with secrets of this process: configuration, tokens, keys
    task_memory_mb: int = _TASK_MEMORY_MB  # limit of each task process; 0: none
    task_processes: int | None = None  # limits of a task; None: those of a sandbox, if there is one
    task_open_files: int | None = None
    task_disk_mb: int | None = None
    task_cpu_s: int | None = None
    egress_allow: tuple[str, ...] = ()  # hosts that `http` tasks may connect to; empty: all
    egress_deny: tuple[str, ...] = ()  # hosts that they must not connect to
    egress_private: bool | None = None  # whether private addresses are allowed unnamed; None: not by several users
    egress_near: tuple[str, ...] = ()  # private hosts that are allowed
    task_network: bool | None = None  # of task processes; None: not for several users
    layer: Mapping[str, Any] = {}  # defaults of executions
    outbox: OutboxSettings = OutboxSettings()
    secret_folders: tuple[str, ...] = ("/run/secrets",)  # of secrets that are mounted as files
    key: str = ""  # that encrypts credentials; empty: the key file beside a SQLite store
    refresh_s: int = _REFRESH_S  # before its end, an access token is renewed
    redact_keys: tuple[str, ...] = ()  # further names whose values are masked for readers
    metrics: MetricsSettings = MetricsSettings()
    tracing: TracingSettings = TracingSettings()
    export: ExportSettings = ExportSettings()
    image: str = ""  # container image that the process runs in

    @property
    def defaults(self) -> dict[str, Any]:
        """Defaults of executions, with what decisions need to know of the server."""
        found = {**self.layer, "pool_capacity": self.capacity - kept_slots(self.capacity)}
        found |= {WORK_LIMITS: self.work_limits} if self.work_limits else {}
        found |= {PLAYBOOK_LIMITS: self.playbook_limits} if self.playbook_limits else {}
        found |= {TRACING: self.tracing.of_executions} if self.tracing.is_on else {}
        return found if self.dlq_enabled else {**found, NO_LETTERS: True}

    @property
    def publishes_letters(self) -> bool:
        """Whether dead letters are also sent to the outbox."""
        return bool(self.dlq_topic and self.outbox.url)

    @property
    def task_limits(self) -> tuple[int, int, int, int]:
        """Processes, open files, MiB on disk and processor seconds of a task; 0: none."""
        given = (self.task_processes, self.task_open_files, self.task_disk_mb, self.task_cpu_s)
        usual = (_TASK_PROCESSES, _TASK_OPEN_FILES, _TASK_DISK_MB, _TASK_CPU_SECONDS)
        usual = usual if self.sandbox not in ("none", "auto") else (0, 0, 0, 0)
        processes, files, disk, cpu = (limit if one is None else one for one, limit in zip(given, usual, strict=True))
        return processes, files, disk, cpu

    @property
    def locks(self) -> Path:
        """Folder with one lock file per execution that a process drives."""
        return self.store.with_name(self.store.name + ".locks")

    @property
    def blobs(self) -> Path:
        """Folder of results too large for the store.

        No other store may use it: garbage collection removes files that this store does not know.
        """
        if not self.database and self.store.name == "noetl.db":
            return self.store.with_name("blobs")
        return self._beside("blobs")

    @property
    def workers(self) -> Path:
        """Folder with one lock file per worker in a process of `noetl up`."""
        return self._beside("workers")

    def _beside(self, what: str) -> Path:
        """Return a folder of this store alone, also if several databases share this place."""
        if not self.database:
            return self.store.with_name(f"{self.store.name}.{what}")
        from urllib.parse import quote as encode
        from urllib.parse import urlsplit
        from zlib import crc32

        url = urlsplit(self.database)
        place = f"{url.hostname or ''}:{url.port or 5432}{url.path}?{url.query}"
        return self.store.with_name(f"{encode(url.path.strip('/'), safe='')}-{crc32(place.encode()):08x}.{what}")


class HttpSettings(Struct, frozen=True):
    """Bounds of connections, requests and answers of a server."""

    connections: int = 4_000
    per_address: int = 2_000  # connections
    head_bytes: int = 32 * 1024  # path and headers
    head_s: int = 10
    body_s: int = 30  # and one second more for each KiB
    reader_s: int = 30  # in which a reader that is behind takes too little
    idle_s: int = 75
    streams: int = 500
    token_streams: int = 100
    answer_bytes: int = 256 * 1024 * 1024
    delivery_bytes: int = 1024 * 1024  # body of a webhook's delivery


class OidcSettings(Struct, frozen=True):
    """OpenID Connect provider of a server, and what its groups may."""

    issuer: str
    client_id: str
    client_secret: str = ""
    scopes: str = "openid profile email"
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    roles: tuple[tuple[str, str, str], ...] = ()  # group, role, namespace; an empty namespace: everywhere
    redirect_url: str = ""


class ServerSettings(Struct, frozen=True):
    """Address, authentication, encryption key and bounds of a server."""

    host: str = _HOST
    port: int = _PORT
    auth: str = "auto"
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    key: str = ""
    http: HttpSettings = HttpSettings()
    check_s: float = CHECK_SECONDS  # for one playbook
    session_s: float = 12 * 3600.0  # lifetime of a user's session
    oidc: OidcSettings | None = None
    public_url: str = ""


def server_settings(
    environment: Mapping[str, str], host: str | None = None, port: int | None = None, auth: str | None = None
) -> ServerSettings:
    """Return the settings of a server; arguments override the environment."""
    return ServerSettings(
        host or environment.get(HOST, "").strip() or _HOST,
        port if port is not None else _number(environment, PORT, _PORT),
        auth or environment.get(AUTH, "").strip() or "auto",
        _split(environment.get(ALLOWED_HOSTS, "")),
        _split(environment.get(ALLOWED_ORIGINS, "")),
        environment.get(ENCRYPTION_KEY, "").strip(),
        _http(environment),
        _seconds(environment, CHECK_TIMEOUT, CHECK_SECONDS),
        _number(environment, SESSION_HOURS, 12) * 3600.0,
        _oidc(environment),
        _public_url(environment.get(PUBLIC_URL, "").strip()),
    )


def _public_url(given: str) -> str:
    if given and re.fullmatch(r"https?://[^\s/?#@]+[^\s?#]*", given) is None:
        raise InvalidSetting(
            f"{PUBLIC_URL} is {given!r}. Write a URL such as https://noetl.example.com.", variable=PUBLIC_URL
        )
    return given.rstrip("/")


def _oidc(environment: Mapping[str, str]) -> OidcSettings | None:
    def text(name: str) -> str:
        return environment.get(name, "").strip() or VARIABLES[name][0]

    if not text(OIDC_ISSUER):
        return None
    return OidcSettings(
        text(OIDC_ISSUER),
        text(OIDC_CLIENT_ID),
        text(OIDC_CLIENT_SECRET),
        text(OIDC_SCOPES),
        text(OIDC_NAME_CLAIM),
        text(OIDC_GROUPS_CLAIM),
        tuple(_group_role(one) for one in _split(text(OIDC_ROLES))),
        text(OIDC_REDIRECT_URL),
    )


def _group_role(given: str) -> tuple[str, str, str]:
    """Return group, role and namespace of `group=role` or `group=role@namespace`."""
    group, mark, place = given.rpartition("=")
    role, _, namespace = place.partition("@")
    if not mark or not group.strip() or not role.strip():
        raise InvalidSetting(
            f"{OIDC_ROLES} has {given!r}. Write GROUP=ROLE or GROUP=ROLE@NAMESPACE, separated by commas.",
            variable=OIDC_ROLES,
        )
    return group.strip(), role.strip(), namespace.strip()


def _http(environment: Mapping[str, str]) -> HttpSettings:
    def number(name: str) -> int:
        return _number(environment, name, int(VARIABLES[name][0]))

    connections = number(HTTP_CONNECTIONS)
    return HttpSettings(
        connections,
        _number(environment, HTTP_PER_ADDRESS, max(1, connections // 2)),
        number(HTTP_HEADER_KB) << 10,
        number(HTTP_HEADER_SECONDS),
        number(HTTP_BODY_SECONDS),
        number(HTTP_READER_SECONDS),
        number(HTTP_IDLE_SECONDS),
        number(HTTP_STREAMS),
        number(HTTP_STREAMS_PER_TOKEN),
        number(HTTP_ANSWERS_MB) << 20,
        number(WEBHOOK_KB) << 10,
    )


class WorkerSettings(Struct, frozen=True):
    """Servers, pools and capacity of a worker."""

    servers: tuple[str, ...]
    token: str | None
    name: str
    pools: tuple[str, ...] = ("",)
    tags: tuple[str, ...] = ()
    capacity: int = _CAPACITY
    poll_s: float = _POLL_S
    grace_s: float = _GRACE_S  # time to finish running tasks on shutdown


def worker_settings(
    environment: Mapping[str, str],
    default_name: str,
    *,
    server: str | None = None,
    token: str | None = None,
    pools: Sequence[str] = (),
    tags: str | None = None,
    capacity: int | None = None,
    grace_s: float | None = None,
) -> WorkerSettings:
    """Return the settings of a worker; arguments override the environment."""
    fallback = _number(environment, CAPACITY, _CAPACITY)
    return WorkerSettings(
        _split(server or environment.get(SERVER_URL, "")),
        token or environment.get(TOKEN, "").strip() or None,
        environment.get(WORKER_ID, "").strip() or default_name,
        tuple(dict.fromkeys(pools)) or ("",),
        _split(tags or ""),
        capacity or _number(environment, WORKER_CONCURRENCY, fallback),
        _seconds(environment, QUEUE_POLL_INTERVAL, _POLL_S),
        _GRACE_S if grace_s is None else grace_s,
    )


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def with_files(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables, with the content of each named file. Raises InvalidInput."""
    named = [name for name in IN_FILES if environment.get(name + FILE, "").strip()]
    if not named:
        return environment
    found = dict(environment)
    for name in named:
        if found.get(name, "").strip():
            raise InvalidInput(f"{name} and {name}{FILE} are both set. Remove one of them.")
        found[name] = read_secret(found.pop(name + FILE).strip(), f"{name}{FILE}")
    return found


def read_secret(file: str, source: str) -> str:
    """Return the text of a file without surrounding space. Raises InvalidInput."""
    try:
        text = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(f"Cannot read the file {file} of {source}: {reason}.") from None
    if not text:
        raise InvalidInput(f"The file {file} of {source} is empty.")
    _secret_files.add(str(Path(file).absolute()))
    return text


def config_file(environment: Mapping[str, str], folder: Path) -> Path:
    """Return the path of `$NOETL_CONFIG`, else of `noetl.yaml` by the store."""
    named, home = environment.get(CONFIG, "").strip(), environment.get(HOME, "").strip()
    return Path(named) if named else (Path(home) if home else folder / ".noetl") / "noetl.yaml"


def secret_files(environment: Mapping[str, str], folder: Path) -> tuple[str, ...]:
    """Return the files that hold settings and secrets of this process."""
    home = environment.get("XDG_CONFIG_HOME", "").strip() or str(Path.home() / ".config")
    return (str(config_file(environment, folder)), str(Path(home, "noetl")), *sorted(_secret_files))


def settings(environment: Mapping[str, str], folder: Path, store: str | None = None) -> Settings:
    """Return the settings of a process. Raises InvalidInput for an invalid variable.

    The store is the argument, else `$NOETL_DB_URL`, else the file in `$NOETL_HOME`, else the one in this folder.
    """
    for name, reason in _ONLY_TRUE.items():
        if environment.get(name, "").strip() not in ("", "true"):
            raise InvalidSetting(f"The setting {name} can only be true. {reason}", variable=name)
    path, database = _store(environment, folder, store)
    return Settings(
        path,
        _number(environment, CAPACITY, _CAPACITY),
        _number(environment, LEASE_SECONDS, _LEASE_SECONDS) * 1000,
        _number(environment, MAX_ATTEMPTS, _MAX_ATTEMPTS),
        liveness_s=_number(environment, LIVENESS_SECONDS, _LIVENESS_SECONDS, least=0),
        ageing_s=_number(environment, QUEUE_AGEING_SECONDS, _QUEUE_AGEING_SECONDS, least=0),
        playbook_limits=_limits(environment, QUEUE_PLAYBOOK_LIMITS, "etl/*=10"),
        work_limits=_work_limits(environment),
        collect_s=_number(environment, COLLECT_SECONDS, _COLLECT_SECONDS, least=0),
        execution_days=_number(environment, EXECUTION_DAYS, 0, least=0),
        result_days=_number(environment, RESULT_DAYS, _RESULT_DAYS, least=0),
        dlq_days=_number(environment, DLQ_RETENTION_DAYS, _DLQ_RETENTION_DAYS, least=0),
        dlq_enabled=_choice(environment, DLQ_ENABLED, ("true", "false")) == "true",
        dlq_topic=environment.get(DLQ_TOPIC, "").strip(),
        database=database,
        sandbox=_choice(environment, SANDBOX, ("auto", "none", "landlock", "bwrap")),
        sandbox_write=_split(environment.get(SANDBOX_WRITE, "")),
        subscription_folders=_split(environment.get(SUBSCRIPTION_FOLDERS, "")),
        hidden=secret_files(environment, folder),
        task_memory_mb=_number(environment, TASK_MEMORY_MB, _TASK_MEMORY_MB, least=0),
        task_processes=_limit(environment, TASK_PROCESSES),
        task_open_files=_limit(environment, TASK_OPEN_FILES),
        task_disk_mb=_limit(environment, TASK_DISK_MB),
        task_cpu_s=_limit(environment, TASK_CPU_SECONDS),
        egress_allow=_split(environment.get(EGRESS_ALLOW, "")),
        egress_deny=_split(environment.get(EGRESS_DENY, "")),
        **_private(environment),
        task_network=_ALLOWED[_choice(environment, TASK_NETWORK, tuple(_ALLOWED))],
        outbox=_outbox(environment),
        secret_folders=_split(environment.get(SECRETS_FOLDERS, "") or VARIABLES[SECRETS_FOLDERS][0]),
        key=environment.get(ENCRYPTION_KEY, "").strip(),
        refresh_s=_number(environment, KEYCHAIN_REFRESH, _REFRESH_S, least=0),
        redact_keys=redact_keys(environment),
        metrics=_metrics(environment),
        tracing=_tracing(environment),
        export=_export(environment),
        image=environment.get(IMAGE, "").strip(),
    )


def _store(environment: Mapping[str, str], folder: Path, store: str | None) -> tuple[Path, str]:
    """Return the path of the SQLite file, and the database's URL or an empty text."""
    home = environment.get(HOME, "").strip()
    database = (store or environment.get(DB_URL, "")).strip()
    if not database.startswith(_DATABASES):
        if database and not store:
            raise _wrong(DB_URL, f"must start with {' or '.join(_DATABASES)}")
        database = ""
    named = store if store and not database else None
    path = Path(named) if named else (Path(home) if home else folder / ".noetl") / "noetl.db"
    return path, database


def _tracing(environment: Mapping[str, str]) -> TracingSettings:
    rate = environment.get(TRACING_SAMPLE_RATE, "").strip() or VARIABLES[TRACING_SAMPLE_RATE][0]
    if not re.fullmatch(r"0|1|1\.0+|0?\.[0-9]+", rate):
        raise _wrong(TRACING_SAMPLE_RATE, f"must be a number from 0 to 1, not {rate!r}")
    endpoint = environment.get(TRACING_ENDPOINT, "").strip()
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise _wrong(TRACING_ENDPOINT, "must start with http:// or https://")
    url = environment.get(TRACING_URL, "").strip()
    if url and (not url.startswith(("http://", "https://")) or "{trace_id}" not in url):
        raise _wrong(TRACING_URL, "must be a URL with {trace_id} in it")
    return TracingSettings(
        _choice(environment, TRACING_ENABLED, ("true", "false")) == "true",
        float(rate),
        _choice(environment, TRACING_ON_ERROR, ("true", "false")) == "true",
        _choice(environment, TRACING_EXPORTER, ("otlp",)),
        endpoint.rstrip("/"),
        _choice(environment, TRACING_ON_SLOW, ("true", "false")) == "true",
        url,
        _headers(environment, TRACING_HEADERS),
    )


def _export(environment: Mapping[str, str]) -> ExportSettings:
    def text(name: str) -> str:
        return environment.get(name, "").strip() or VARIABLES[name][0]

    for name in (EXPORT_CLICKHOUSE_URL, EXPORT_OTLP_URL, EXPORT_OPENLINEAGE_URL):
        if text(name) and not text(name).startswith(("http://", "https://")):
            raise _wrong(name, "must start with http:// or https://")
    return ExportSettings(
        text(EXPORT_CLICKHOUSE_URL),
        text(EXPORT_CLICKHOUSE_TABLE),
        text(EXPORT_PARQUET_FOLDER),
        text(EXPORT_OTLP_URL),
        _headers(environment, EXPORT_OTLP_HEADERS),
        text(EXPORT_OPENLINEAGE_URL),
        text(EXPORT_OPENLINEAGE_NAMESPACE),
        _headers(environment, EXPORT_OPENLINEAGE_HEADERS),
    )


def _headers(environment: Mapping[str, str], name: str) -> dict[str, str]:
    """Return HTTP headers of a setting; an error shows none of them."""
    found = {}
    for part in _split(environment.get(name, "")):
        header, equals, value = part.partition("=")
        if not equals or re.fullmatch(r"[\w-]+", header.strip()) is None:
            raise _wrong(name, "must hold headers as NAME=VALUE, separated by commas")
        found[header.strip()] = value.strip()
    return found


def _metrics(environment: Mapping[str, str]) -> MetricsSettings:
    path = environment.get(METRICS_PATH, "").strip() or VARIABLES[METRICS_PATH][0]
    if not re.fullmatch(r"/[\w./-]*", path):
        raise _wrong(METRICS_PATH, f"must be a path such as /metrics, not {path!r}")
    port = _number(environment, METRICS_PORT, 0, least=0)
    if port > _MOST_PORT:
        raise _wrong(METRICS_PORT, f"must be a port of at most {_MOST_PORT}")
    is_enabled = _choice(environment, METRICS_ENABLED, ("true", "false")) == "true"
    push_url = environment.get(METRICS_PUSH_URL, "").strip()
    if push_url and not push_url.startswith(("http://", "https://")):
        raise _wrong(METRICS_PUSH_URL, "must start with http:// or https://")
    push_s = _number(environment, METRICS_PUSH_SECONDS, int(VARIABLES[METRICS_PUSH_SECONDS][0]))
    host = environment.get(METRICS_HOST, "").strip() or _HOST
    return MetricsSettings(is_enabled, host, port, path, push_url, push_s)


def _work_limits(environment: Mapping[str, str]) -> dict[str, int]:
    kinds = _limits(environment, QUEUE_KIND_LIMITS, "http=20")
    pools = _limits(environment, QUEUE_POOL_LIMITS, "gpu=2")
    return {f"kind {name}": most for name, most in kinds.items()} | {
        f"pool {name}": most for name, most in pools.items()
    }


def logging_settings(environment: Mapping[str, str]) -> tuple[str, str]:
    """Return level (in capitals, empty for the default) and format of log lines.

    Raises InvalidInput.
    """
    name = LOGGING_LEVEL if environment.get(LOGGING_LEVEL, "").strip() else LOG_LEVEL
    level = environment.get(name, "").strip()
    if level and level.lower() not in LEVELS:
        told = f"{name} is `{level}`, which is no level. Use {', '.join(LEVELS[:-1])} or {LEVELS[-1]}."
        raise InvalidSetting(told, variable=name)
    return level.upper(), _choice(environment, LOGGING_FORMAT, ("console", "json"))


def redact_keys(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the further names whose values are masked for readers."""
    return _split(environment.get(REDACT_KEYS, ""))


def _private(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return whether private addresses are allowed, and the named ones that are."""
    text = environment.get(EGRESS_PRIVATE, "").strip() or "auto"
    allowed, near = (_ALLOWED[text], ()) if text in _ALLOWED else (False, _split(text))
    return {"egress_private": allowed, "egress_near": near}


def database_option(environment: Mapping[str, str], url: str) -> str:
    """Return the option of a printed command that names a database, no password."""
    if environment.get(DB_URL, "").strip() == url:
        return f'--db "${DB_URL}"'
    shown = re.sub(r"(://[^:@/]*:)[^@/]+@", r"\1PASSWORD@", url)
    return f"--db {quote(shown)}"


def store_option(environment: Mapping[str, str], settings: Settings) -> str:
    """Return the option that names a store in a printed command, without a password."""
    return (
        database_option(environment, settings.database)
        if settings.database
        else f"--store {quote(str(settings.store))}"
    )


def _outbox(environment: Mapping[str, str]) -> OutboxSettings:
    least = {OUTBOX_MAX_ATTEMPTS: 1, OUTBOX_TIMEOUT_MS: 1}
    names = (OUTBOX_MAX_ATTEMPTS, OUTBOX_BASE_MS, OUTBOX_MAX_MS, OUTBOX_DAYS, OUTBOX_TIMEOUT_MS)
    numbers = [_number(environment, name, int(VARIABLES[name][0]), least.get(name, 0)) for name in names]
    url = environment.get(OUTBOX_URL, "").strip()
    if url and not url.startswith(("http://", "https://")):
        raise _wrong(OUTBOX_URL, "must start with http:// or https://")
    return OutboxSettings(url, *numbers)


def _wrong(name: str, what: str) -> InvalidSetting:
    return InvalidSetting(f"The setting {name} {what}.", variable=name)


def _choice(environment: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """Return one of some words; the first is the default."""
    text = environment.get(name, "").strip() or words[0]
    if text not in words:
        raise _wrong(name, f"must be one of {', '.join(words)}, not {text!r}")
    return text


def _number(environment: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise _wrong(name, f"must be an integer of at least {least}, not {text!r}")
    return int(text)


def _limit(environment: Mapping[str, str], name: str) -> int | None:
    return _number(environment, name, 0, least=0) if environment.get(name, "").strip() else None


def _limits(environment: Mapping[str, str], name: str, example: str) -> dict[str, int]:
    """Return the numbers of a setting such as `http=20,postgres=4`, by name."""
    found: dict[str, int] = {}
    for part in _split(environment.get(name, "")):
        what, equals, number = (word.strip() for word in part.rpartition("="))
        if not equals or not what or not number.isdecimal() or not 0 < int(number) <= _MOST_LIMIT:
            raise _wrong(
                name, f"must be names with numbers from 1 to {_MOST_LIMIT:,}, such as `{example}`; `{part}` is not"
            )
        key = "" if what == DEFAULT_POOL else what
        if key in found:
            raise _wrong(name, f"gives `{what}` two numbers, the second with `{part}`: remove one")
        found[key] = int(number)
    return found


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) is None or not float(text):
        raise _wrong(name, f"must be a positive number of seconds, not {text!r}")
    return float(text)


def credential(environment: Mapping[str, str], name: str) -> Mapping[str, Any]:
    """Return a credential from the environment. Raises KeyError.

    `pg_main` is `NOETL_CREDENTIAL_PG_MAIN`: a JSON object, a URL (the field `dsn`), or another text (the field `token`).
    """
    variable = CREDENTIAL + credential_suffix(name)
    text = environment.get(variable, "").strip()
    if not text:
        raise KeyError(name)
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError as error:
            raise CredentialUnavailable(f"{variable} begins with a brace and is no JSON object: {error}") from None
        if isinstance(found, dict):
            return found
    if text.startswith("[") and _is_json(text):
        raise CredentialUnavailable(f"{variable} is a JSON list. Set a JSON object, a URL, or the text of a token.")
    return {"dsn": text} if "://" in text else {"token": text}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def credential_suffix(name: str) -> str:
    """Return how the variable of a credential ends: `PG_MAIN` for `pg_main`."""
    return re.sub(r"\W", "_", name).upper()


def credential_suffixes(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ends of all variables that hold credentials, without their values."""
    ends = (
        name.removeprefix(CREDENTIAL)
        for name, text in environment.items()
        if name.startswith(CREDENTIAL) and text.strip()
    )
    return tuple(sorted(ends))
