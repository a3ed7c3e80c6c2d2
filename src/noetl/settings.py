"""The settings of a process: each knob is named, typed, defaulted and described once; and the credentials it was given.

They come from the environment, below it a configuration file (`configuration`), and from what a command is given; a
command's own options win. Opens nothing. Tested in tests/unit/test_settings.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from noetl.model.errors import InvalidInput
from noetl.model.letters import NO_LETTERS

HOME = "NOETL_HOME"
CONFIG = "NOETL_CONFIG"
DB_URL = "NOETL_DB_URL"
CAPACITY = "NOETL_CAPACITY"
LEASE_SECONDS = "NOETL_LEASE_SECONDS"
MAX_ATTEMPTS = "NOETL_MAX_ATTEMPTS"
COLLECT_SECONDS = "NOETL_COLLECT_SECONDS"
LIVENESS_SECONDS = "NOETL_LIVENESS_SECONDS"
RESULT_DAYS = "NOETL_RESULT_DAYS"
DLQ_RETENTION_DAYS = "NOETL_DLQ_RETENTION_DAYS"
DLQ_ENABLED = "NOETL_DLQ_ENABLED"
DLQ_TOPIC = "NOETL_DLQ_TOPIC"
CREDENTIAL = "NOETL_CREDENTIAL_"
LOG_LEVEL = "NOETL_LOG_LEVEL"
HOST = "NOETL_HOST"
PORT = "NOETL_PORT"
AUTH = "NOETL_AUTH"
ALLOWED_HOSTS = "NOETL_ALLOWED_HOSTS"
ALLOWED_ORIGINS = "NOETL_ALLOWED_ORIGINS"
ENCRYPTION_KEY = "NOETL_ENCRYPTION_KEY"
SERVER_URL = "NOETL_SERVER_URL"
TOKEN = "NOETL_TOKEN"
WORKER_ID = "NOETL_WORKER_ID"
WORKER_CONCURRENCY = "NOETL_WORKER_CONCURRENCY"
QUEUE_POLL_INTERVAL = "NOETL_QUEUE_POLL_INTERVAL"
SANDBOX = "NOETL_SANDBOX"
EGRESS_ALLOW = "NOETL_EGRESS_ALLOW"
EGRESS_DENY = "NOETL_EGRESS_DENY"
EGRESS_PRIVATE = "NOETL_EGRESS_PRIVATE"
OUTBOX_URL = "NOETL_OUTBOX_URL"
OUTBOX_MAX_ATTEMPTS = "NOETL_OUTBOX_MAX_ATTEMPTS"
OUTBOX_BASE_MS = "NOETL_OUTBOX_BASE_MS"
OUTBOX_MAX_MS = "NOETL_OUTBOX_MAX_MS"
OUTBOX_DAYS = "NOETL_OUTBOX_DAYS"
OUTBOX_TIMEOUT_MS = "NOETL_OUTBOX_TIMEOUT_MS"
SECTIONS = tuple(
    f"NOETL_{name}_" for name in ("RETRIES", "TIMEOUTS", "LIMITS", "RESULT", "POLICIES", "ORCHESTRATOR")
)  # of settings for executions: see `configuration`
_CAPACITY = 32
_LEASE_SECONDS = 30
_MAX_ATTEMPTS = 5
_POLL_S = 10
_GRACE_S = 30
_COLLECT_SECONDS = 3600
_LIVENESS_SECONDS = 10
_RESULT_DAYS = 30
_DLQ_RETENTION_DAYS = 30
_HOST = "127.0.0.1"
_PORT = 8082
_DATABASES = ("postgresql://", "postgres://")
VARIABLES: dict[
    str, tuple[str, str]
] = {  # environment variable → (default, what it is for); the reference page is made of it
    HOME: ("./.noetl", "The folder with the store `noetl.db` and what belongs to it. `--store PATH` wins over it."),
    CONFIG: (
        "noetl.yaml in that folder",
        "A file with settings, below those of the environment: names in lower case without `NOETL_`, also as nested maps.",
    ),
    DB_URL: (
        "",
        "The PostgreSQL database that is the store: `postgresql://user:password@host/name`. `--store` wins over it.",
    ),
    CAPACITY: (
        str(_CAPACITY),
        "How many pieces of work the worker holds at once; parallel loops are as wide by default.",
    ),
    LEASE_SECONDS: (
        str(_LEASE_SECONDS),
        "How long a worker that says nothing keeps its work before another may take it.",
    ),
    MAX_ATTEMPTS: (
        str(_MAX_ATTEMPTS),
        "How often a piece of work is handed out before it is given up and its step fails.",
    ),
    COLLECT_SECONDS: (
        str(_COLLECT_SECONDS),
        "How often a server looks for stored results that may go; 0: never, and `noetl admin gc` does it.",
    ),
    LIVENESS_SECONDS: (
        str(_LIVENESS_SECONDS),
        "How often one of the servers looks for executions that stand still because rows were lost; 0: never.",
    ),
    RESULT_DAYS: (str(_RESULT_DAYS), "How long stored results stay after their execution has ended, in days."),
    DLQ_RETENTION_DAYS: (
        str(_DLQ_RETENTION_DAYS),
        "How long dead letters stay after they were replayed or discarded, in days; `noetl admin prune` removes them.",
    ),
    DLQ_ENABLED: (
        "true",
        "`false`: no dead letters are kept of work that fails from now on; only the log tells of it.",
    ),
    DLQ_TOPIC: (
        "",
        "A topic under which every new dead letter is also sent to `NOETL_OUTBOX_URL`, through the outbox; without, none is.",
    ),
    LOG_LEVEL: ("error", "Which lines the process itself writes to standard error: debug, info, warning or error."),
    HOST: (_HOST, "The address that the server listens on. Others than this machine need tokens."),
    PORT: (str(_PORT), "The port that the server listens on."),
    AUTH: (
        "auto",
        "Whether the server asks for API tokens: `token`, `none`, or `auto`, which asks where others can reach it.",
    ),
    ALLOWED_HOSTS: (
        "",
        "Names that the server is called by, divided by commas. On loopback its own names are enough; elsewhere any name.",
    ),
    ALLOWED_ORIGINS: ("", "Other origins whose pages may call the server, divided by commas."),
    ENCRYPTION_KEY: (
        "",
        "What credentials are sealed with: 32 bytes in URL-safe base64. Several, the newest first. Else a key file.",
    ),
    SERVER_URL: ("", "The server that workers and commands speak to: `http://host:8082`. Several, with commas."),
    TOKEN: ("", "The API token that workers and commands show to the server."),
    WORKER_ID: ("host:process", "What a worker is called; no two that run at the same time may have one name."),
    WORKER_CONCURRENCY: (
        "",
        "How many pieces of work `noetl worker` holds at once; NOETL_CAPACITY where it is not set.",
    ),
    QUEUE_POLL_INTERVAL: (
        str(_POLL_S),
        "For how many seconds a worker's request for work waits at the server before it is asked again.",
    ),
    SANDBOX: (
        "none",
        "`landlock` or `bwrap`: processes of tasks write only to a temporary folder of their own and do not see the store.",
    ),
    EGRESS_ALLOW: (
        "",
        "Where `http` tasks may connect to: names (`a.example.com`, `*.example.com`), addresses, networks, with commas.",
    ),
    EGRESS_DENY: ("", "Where `http` tasks must not connect to, written likewise; it wins over what is allowed."),
    EGRESS_PRIVATE: (
        "allow",
        "`deny`: addresses of this machine and of private networks are reached only where `NOETL_EGRESS_ALLOW` names them.",
    ),
    OUTBOX_URL: ("", "Where the relay sends messages of the outbox that name no address: this, a slash and the topic."),
    OUTBOX_MAX_ATTEMPTS: ("20", "How often a message of the outbox is tried before it is dead and waits for a person."),
    OUTBOX_BASE_MS: ("1000", "The delay after the first failed attempt of a message, in milliseconds; it doubles."),
    OUTBOX_MAX_MS: ("300000", "No delay between two attempts of a message is longer, in milliseconds."),
    OUTBOX_TIMEOUT_MS: ("30000", "How long one attempt to deliver a message may take, in milliseconds."),
    OUTBOX_DAYS: ("7", "How long messages stay in the outbox after they were delivered or discarded, in days."),
    CREDENTIAL + "NAME": (
        "",
        "A credential: `auth: pg_main` reads `NOETL_CREDENTIAL_PG_MAIN`, a JSON object, an address or a token.",
    ),
}


class OutboxSettings(Struct, frozen=True):
    """How messages of the outbox are delivered."""

    url: str = ""  # for those that name no address
    max_attempts: int = 20
    base_ms: int = 1_000
    max_ms: int = 300_000
    days: int = 7  # how long they stay when they are done
    timeout_ms: int = 30_000  # of one attempt


class Settings(Struct, frozen=True):
    """What one process works with."""

    store: Path  # the SQLite file; with a database, the place of what is kept beside it on this machine
    capacity: int = _CAPACITY  # pieces of work that a worker holds at once
    lease_ms: int = _LEASE_SECONDS * 1000  # how long a silent worker keeps its work
    max_attempts: int = _MAX_ATTEMPTS  # deliveries of a piece of work before it is given up
    liveness_s: int = _LIVENESS_SECONDS  # between two looks for executions that stand still; 0: never
    collect_s: int = _COLLECT_SECONDS  # between two looks for stored results that may go; 0: never
    result_days: int = _RESULT_DAYS  # how long they stay after their execution
    dlq_days: int = _DLQ_RETENTION_DAYS  # how long dead letters stay after they were closed
    dlq_enabled: bool = True  # whether there are new ones
    dlq_topic: str = ""  # under which they are sent to the relay's address
    database: str = ""  # the address of the PostgreSQL database that is the store instead
    sandbox: str = "none"  # walls around the processes of tasks
    egress_allow: tuple[str, ...] = ()  # hosts that `http` tasks may reach; empty: all
    egress_deny: tuple[str, ...] = ()  # hosts that they must not
    egress_private: bool = True  # whether private addresses may be reached without being named
    layer: Mapping[str, Any] = {}  # what executions have where their playbooks say nothing
    outbox: OutboxSettings = OutboxSettings()

    @property
    def defaults(self) -> dict[str, Any]:
        """What executions have where their playbooks say nothing, and what else their decisions ask of a server."""
        found = {**self.layer, "pool_capacity": self.capacity}
        return found if self.dlq_enabled else {**found, NO_LETTERS: True}

    @property
    def publishes_letters(self) -> bool:
        """Whether dead letters are sent somewhere."""
        return bool(self.dlq_topic and self.outbox.url)

    @property
    def locks(self) -> Path:
        """The folder with one file per execution that a process drives."""
        return self.store.with_name(self.store.name + ".locks")

    @property
    def blobs(self) -> Path:
        """The folder for results that are too large for the store; no other store uses it, for what it does not know may go."""
        if self.database:
            from urllib.parse import quote, urlsplit  # only those with a database pay for it
            from zlib import crc32

            url = urlsplit(self.database)
            place = f"{url.hostname or ''}:{url.port or 5432}{url.path}?{url.query}"
            return self.store.with_name(f"{quote(url.path.strip('/'), safe='')}-{crc32(place.encode()):08x}.blobs")
        return self.store.with_name("blobs" if self.store.name == "noetl.db" else f"{self.store.name}.blobs")


class ServerSettings(Struct, frozen=True):
    """What a server listens on, whom it asks for tokens, and what it seals credentials with."""

    host: str = _HOST
    port: int = _PORT
    auth: str = "auto"
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    key: str = ""


def server_settings(
    environment: Mapping[str, str], host: str | None = None, port: int | None = None, auth: str | None = None
) -> ServerSettings:
    """Gather the settings of a server; what a command is given wins."""
    return ServerSettings(
        host or environment.get(HOST, "").strip() or _HOST,
        port if port is not None else _number(environment, PORT, _PORT),
        auth or environment.get(AUTH, "").strip() or "auto",
        _listed(environment.get(ALLOWED_HOSTS, "")),
        _listed(environment.get(ALLOWED_ORIGINS, "")),
        environment.get(ENCRYPTION_KEY, "").strip(),
    )


class WorkerSettings(Struct, frozen=True):
    """Whom a worker works for, and what it takes."""

    servers: tuple[str, ...]
    token: str | None
    name: str
    pools: tuple[str, ...] = ("",)
    tags: tuple[str, ...] = ()
    capacity: int = _CAPACITY
    poll_s: float = _POLL_S
    grace_s: float = _GRACE_S  # how long it may finish what runs when it is told to end


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
    """Gather the settings of a worker; what a command is given wins."""
    fallback = _number(environment, CAPACITY, _CAPACITY)
    return WorkerSettings(
        _listed(server or environment.get(SERVER_URL, "")),
        token or environment.get(TOKEN, "").strip() or None,
        environment.get(WORKER_ID, "").strip() or default_name,
        tuple(dict.fromkeys(pools)) or ("",),
        _listed(tags or ""),
        capacity or _number(environment, WORKER_CONCURRENCY, fallback),
        _seconds(environment, QUEUE_POLL_INTERVAL, _POLL_S),
        _GRACE_S if grace_s is None else grace_s,
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def config_file(environment: Mapping[str, str], folder: Path) -> Path:
    """Give the configuration file: the one that is named, else that of `$NOETL_HOME`, else that of this folder."""
    named, home = environment.get(CONFIG, "").strip(), environment.get(HOME, "").strip()
    return Path(named) if named else (Path(home) if home else folder / ".noetl") / "noetl.yaml"


def settings(environment: Mapping[str, str], folder: Path, store: str | None = None) -> Settings:
    """Gather the settings. The store is the file or database that is named, else the database of `$NOETL_DB_URL`, else the
    file of `$NOETL_HOME`, else that of this folder."""
    home = environment.get(HOME, "").strip()
    database = (store or environment.get(DB_URL, "")).strip()
    if not database.startswith(_DATABASES):
        if database and not store:
            raise InvalidInput(f"the environment variable {DB_URL} must begin with {' or '.join(_DATABASES)}.")
        database = ""
    named = store if store and not database else None
    path = Path(named) if named else (Path(home) if home else folder / ".noetl") / "noetl.db"
    return Settings(
        path,
        _number(environment, CAPACITY, _CAPACITY),
        _number(environment, LEASE_SECONDS, _LEASE_SECONDS) * 1000,
        _number(environment, MAX_ATTEMPTS, _MAX_ATTEMPTS),
        liveness_s=_number(environment, LIVENESS_SECONDS, _LIVENESS_SECONDS, least=0),
        collect_s=_number(environment, COLLECT_SECONDS, _COLLECT_SECONDS, least=0),
        result_days=_number(environment, RESULT_DAYS, _RESULT_DAYS, least=0),
        dlq_days=_number(environment, DLQ_RETENTION_DAYS, _DLQ_RETENTION_DAYS, least=0),
        dlq_enabled=_choice(environment, DLQ_ENABLED, ("true", "false")) == "true",
        dlq_topic=environment.get(DLQ_TOPIC, "").strip(),
        database=database,
        sandbox=_choice(environment, SANDBOX, ("none", "landlock", "bwrap")),
        egress_allow=_listed(environment.get(EGRESS_ALLOW, "")),
        egress_deny=_listed(environment.get(EGRESS_DENY, "")),
        egress_private=_choice(environment, EGRESS_PRIVATE, ("allow", "deny")) == "allow",
        outbox=_outbox(environment),
    )


def _outbox(environment: Mapping[str, str]) -> OutboxSettings:
    least = {OUTBOX_MAX_ATTEMPTS: 1, OUTBOX_TIMEOUT_MS: 1}
    names = (OUTBOX_MAX_ATTEMPTS, OUTBOX_BASE_MS, OUTBOX_MAX_MS, OUTBOX_DAYS, OUTBOX_TIMEOUT_MS)
    numbers = [_number(environment, name, int(VARIABLES[name][0]), least.get(name, 0)) for name in names]
    url = environment.get(OUTBOX_URL, "").strip()
    if url and not url.startswith(("http://", "https://")):
        raise InvalidInput(f"the environment variable {OUTBOX_URL} must begin with http:// or https://.")
    return OutboxSettings(url, *numbers)


def _choice(environment: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """Give one of some words; the first is the default."""
    text = environment.get(name, "").strip() or words[0]
    if text not in words:
        raise InvalidInput(f"the environment variable {name} must be one of {', '.join(words)}, and it is {text!r}.")
    return text


def _number(environment: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not text.isdecimal() or int(text) < least:
        raise InvalidInput(
            f"the environment variable {name} must be a whole number from {least} on, and it is {text!r}."
        )
    return int(text)


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) is None or not float(text):
        raise InvalidInput(f"the environment variable {name} must be a number of seconds above 0, and it is {text!r}.")
    return float(text)


def credential(environment: Mapping[str, str], name: str) -> Mapping[str, Any]:
    """Give a credential from the environment: `NOETL_CREDENTIAL_PG_MAIN` holds `pg_main`. Raises KeyError.

    Its value is a JSON object; an address stands for `dsn`, any other text for `token`.
    """
    text = environment.get(CREDENTIAL + re.sub(r"\W", "_", name).upper(), "").strip()
    if not text:
        raise KeyError(name)
    if text.startswith("{"):
        try:
            found = json.loads(text)
        except ValueError:
            raise KeyError(f"{name} (its environment variable holds no JSON object)") from None
        if isinstance(found, dict):
            return found
    return {"dsn": text} if "://" in text else {"token": text}
