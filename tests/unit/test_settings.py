"""The settings of a process, from its environment and its options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetl.model.errors import CredentialUnavailable, InvalidInput
from noetl.model.letters import NO_LETTERS
from noetl.settings import (
    CAPACITY,
    DLQ_ENABLED,
    DLQ_TOPIC,
    EGRESS_ALLOW,
    EGRESS_DENY,
    EGRESS_PRIVATE,
    FILE,
    HOME,
    IN_FILES,
    LEASE_SECONDS,
    MAX_ATTEMPTS,
    OUTBOX_URL,
    OutboxSettings,
    credential,
    settings,
    with_files,
    worker_settings,
)

HERE = Path("/here")


@pytest.mark.parametrize(
    ("environment", "store", "path"),
    [
        ({}, None, "/here/.noetl/noetl.db"),
        ({HOME: "/home"}, None, "/home/noetl.db"),
        ({HOME: "  "}, None, "/here/.noetl/noetl.db"),
        ({HOME: "/home"}, "mine.db", "mine.db"),
    ],
)
def test_the_store_is_the_named_one_else_that_of_home_else_that_of_the_folder(
    environment: dict[str, str], store: str | None, path: str
) -> None:
    assert settings(environment, HERE, store).store == Path(path)


def test_knobs_come_from_the_environment() -> None:
    found = settings({CAPACITY: "3", LEASE_SECONDS: "7", MAX_ATTEMPTS: "2"}, HERE)
    assert (found.capacity, found.lease_ms, found.max_attempts) == (3, 7_000, 2)
    plain = settings({}, HERE)
    assert (plain.capacity, plain.lease_ms, plain.max_attempts) == (32, 10_000, 5)
    assert plain.defaults["pool_capacity"] == 30  # of a loop: the others are kept for idle playbooks


def test_egress_comes_from_the_environment() -> None:
    given = {EGRESS_ALLOW: "a.org, 10.0.0.0/8,", EGRESS_DENY: "b.org", EGRESS_PRIVATE: "deny"}
    found = settings(given, HERE)
    assert (found.egress_allow, found.egress_deny, found.egress_private) == (("a.org", "10.0.0.0/8"), ("b.org",), False)
    assert settings({}, HERE).egress_private is None
    named = settings({EGRESS_PRIVATE: "10.0.0.0/8, db"}, HERE)
    assert (named.egress_private, named.egress_near) == (False, ("10.0.0.0/8", "db"))


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_a_knob_that_is_no_number_is_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput, match=CAPACITY):
        settings({CAPACITY: text}, HERE)


def test_locks_and_blobs_lie_beside_the_store() -> None:
    found = settings({}, HERE, "/data/a.db")
    assert found.locks == Path("/data/a.db.locks")
    assert found.blobs.parent == Path("/data")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"host": "db", "user": "me"}', {"host": "db", "user": "me"}),
        ("postgresql://me@127.0.0.1/db", {"dsn": "postgresql://me@127.0.0.1/db"}),
        ("s3cret", {"token": "s3cret"}),
    ],
)
def test_a_credential_is_an_object_an_address_or_a_token(text: str, expected: Any) -> None:
    assert credential({"NOETL_CREDENTIAL_PG_MAIN": text}, "pg-main") == expected


@pytest.mark.parametrize("environment", [{}, {"NOETL_CREDENTIAL_PG": ""}])
def test_a_credential_that_is_not_there(environment: dict[str, str]) -> None:
    with pytest.raises(KeyError, match="pg"):
        credential(environment, "pg")


def test_a_credential_that_is_broken_names_its_variable() -> None:
    with pytest.raises(CredentialUnavailable, match="NOETL_CREDENTIAL_PG begins with a brace and is no JSON object"):
        credential({"NOETL_CREDENTIAL_PG": "{broken"}, "pg")
    with pytest.raises(CredentialUnavailable, match=r"NOETL_CREDENTIAL_PG is a JSON list\. Set a JSON object"):
        credential({"NOETL_CREDENTIAL_PG": "[1, 2]"}, "pg")
    assert credential({"NOETL_CREDENTIAL_PG": "[a-token"}, "pg") == {"token": "[a-token"}


@pytest.mark.parametrize(("text", "seconds"), [("", 10.0), ("3", 3.0), ("0.25", 0.25)])
def test_a_worker_polls_as_often_as_it_is_told(text: str, seconds: float) -> None:
    assert worker_settings({"NOETL_QUEUE_POLL_INTERVAL": text}, "w").poll_s == seconds


@pytest.mark.parametrize("text", ["0", "0.0", "-1", "x", "1e3", "٣"])
def test_a_poll_interval_is_a_number_of_seconds(text: str) -> None:
    with pytest.raises(InvalidInput, match="NOETL_QUEUE_POLL_INTERVAL"):
        worker_settings({"NOETL_QUEUE_POLL_INTERVAL": text}, "w")


def test_a_worker_is_set_by_the_environment() -> None:
    given = {"NOETL_SERVER_URL": "http://a,http://b", "NOETL_WORKER_ID": "me", "NOETL_WORKER_CONCURRENCY": "3"}
    found = worker_settings(given, "w")
    assert (found.servers, found.name, found.capacity) == (("http://a", "http://b"), "me", 3)
    assert worker_settings({"NOETL_CAPACITY": "5"}, "w", capacity=None).capacity == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NOETL_OUTBOX_URL", "ftp://a"),
        ("NOETL_OUTBOX_MAX_ATTEMPTS", "0"),
        ("NOETL_OUTBOX_TIMEOUT_MS", "0"),
        ("NOETL_OUTBOX_BASE_MS", "soon"),
        ("NOETL_OUTBOX_DAYS", "-1"),
    ],
)
def test_settings_of_the_outbox_that_cannot_be_used_are_told(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        settings({name: value}, Path("."))


def test_settings_of_the_outbox() -> None:
    assert settings({}, Path(".")).outbox == OutboxSettings("", 20, 1_000, 300_000, 7, 30_000)
    given = {"NOETL_OUTBOX_URL": "https://a/b", "NOETL_OUTBOX_BASE_MS": "0", "NOETL_OUTBOX_DAYS": "0"}
    assert settings(given, Path(".")).outbox == OutboxSettings("https://a/b", 20, 0, 300_000, 0, 30_000)


def test_dead_letters_are_kept_and_sent_nowhere_unless_somebody_says_otherwise() -> None:
    plain = settings({}, HERE)
    assert (plain.dlq_enabled, plain.publishes_letters, NO_LETTERS in plain.defaults) == (True, False, False)
    assert NO_LETTERS in settings({DLQ_ENABLED: "false"}, HERE).defaults
    named = settings({DLQ_TOPIC: "noetl-dlq"}, HERE)
    assert (named.dlq_topic, named.publishes_letters) == ("noetl-dlq", False)  # it has no address
    assert settings({DLQ_TOPIC: "noetl-dlq", OUTBOX_URL: "https://example.org"}, HERE).publishes_letters
    with pytest.raises(InvalidInput, match="NOETL_DLQ_ENABLED must be one of true, false"):
        settings({DLQ_ENABLED: "yes"}, HERE)


@pytest.mark.parametrize("name", IN_FILES)
def test_a_secret_is_read_from_the_file_that_its_variable_names(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("  s3cret\n", encoding="utf-8")
    assert with_files({name + FILE: str(file), HOME: "/home"}) == {name: "s3cret", HOME: "/home"}
    with pytest.raises(InvalidInput, match=f"{name} and {name}_FILE are both set"):
        with_files({name + FILE: str(file), name: "x"})
    with pytest.raises(InvalidInput, match=f"of {name}_FILE: No such file"):
        with_files({name + FILE: str(tmp_path / "none")})
    file.write_text("\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="is empty"):
        with_files({name + FILE: str(file)})


def test_variables_without_files_are_left_alone() -> None:
    given = {"NOETL_TOKEN": "x", "NOETL_TOKEN_FILE": " "}
    assert with_files(given) is given


def test_limits_of_work_are_names_with_numbers() -> None:
    given = {"NOETL_QUEUE_KIND_LIMITS": "http=20, postgres = 4", "NOETL_QUEUE_POOL_LIMITS": "gpu=2,(default)=50,a=b=1"}
    limits = {"kind http": 20, "kind postgres": 4, "pool gpu": 2, "pool ": 50, "pool a=b": 1}
    found = settings({**given, "NOETL_QUEUE_PLAYBOOK_LIMITS": "etl/*=10,a=1"}, Path("/x"))
    assert list(found.playbook_limits.items()) == [("etl/*", 10), ("a", 1)]
    assert found.work_limits == limits
    assert found.defaults["work_limits"] == limits
    assert "work_limits" not in settings({}, Path("/x")).defaults


@pytest.mark.parametrize("name", ["KIND", "POOL", "PLAYBOOK"])
def test_a_name_with_two_limits_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=f"NOETL_QUEUE_{name}_LIMITS gives `a` two numbers, the second with `a=2`"):
        settings({f"NOETL_QUEUE_{name}_LIMITS": "a=1,b=1,a=2"}, Path("/x"))


@pytest.mark.parametrize("text", ["http", "http=", "=3", "http=0", "http=-1", "http=1.5", "http=1000001", "http=3;x"])
def test_a_limit_without_a_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="NOETL_QUEUE_KIND_LIMITS must be names with numbers"):
        settings({"NOETL_QUEUE_KIND_LIMITS": text}, Path("/x"))
