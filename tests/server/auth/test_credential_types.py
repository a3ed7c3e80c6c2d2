"""Types of credentials: what tools read is what may be stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noetl.masking.values import KnownValues
from noetl.server.auth.credential_types import TYPES, name_problem, problems
from noetl.tools.sql.connections import _PARTS
from noetl.worker.secrets.oauth2 import _SENT
from tests.server.serving import in_process


def test_the_fields_are_those_that_are_read() -> None:
    assert set(TYPES["postgres"].names()) == {*_PARTS, "dsn", "url", "conninfo", "data"}
    assert set(_SENT) <= set(TYPES["oauth2"].names())


_BOTH = {"url"}  # an address with a password, a web hook, or a server of NATS: what is secret in it is looked for


@pytest.mark.parametrize("kind", TYPES)
def test_the_fields_that_are_secret_are_those_that_are_masked(kind: str) -> None:
    for field in TYPES[kind].fields:
        for name in {field.name, *field.aliases} - _BOTH - {"data"}:
            for value in ("text-of-it", 8765432109):
                known = KnownValues()
                known.learn("c", {name: value})
                assert known.occurs(f"a {value} b") is field.secret, name
            if field.form == "url":
                known = KnownValues()
                known.learn("c", {name: "https://example.org/path/of"})
                assert not known.occurs("https://example.org/path/of"), name


def test_a_name_that_two_types_have_is_a_secret_in_both_or_in_none() -> None:
    found: dict[str, set[bool]] = {}
    for field in (field for kind in TYPES.values() for field in kind.fields):
        for name in (field.name, *field.aliases):
            found.setdefault(name, set()).add(field.secret)
    assert {name for name, secret in found.items() if len(secret) == 2} == _BOTH


@pytest.mark.parametrize("kind", TYPES)
def test_the_example_of_each_type_is_right(kind: str) -> None:
    assert problems(kind, TYPES[kind].example) == ()


@pytest.mark.parametrize(
    ("kind", "data", "where", "words"),
    [
        ("postgres", {"dsn": "x", "pasword": "y"}, "$.data.pasword", "Did you mean 'password'?"),
        ("postgres", {"user": "ada"}, "$.data", "needs `dsn`, `host`, `dbname` or `data`"),
        ("postgres", {"dsn": ""}, "$.data", "needs `dsn`"),
        ("bearer", {"tokn": "x"}, "$.data.tokn", "Did you mean 'token'?"),
        ("basic", {"username": "ada"}, "$.data", "needs `password`"),
        ("api_key", {"key": "x"}, "$.data.key", "has no field `key`"),
        ("oauth2", {"client_secret": "x"}, "$.data", "needs `client_id`"),
        ("secret", {}, "$.data", "needs `value`"),
        ("postgres", {"host": "h", "port": 70000}, "$.data.port", "is no port"),
        ("postgres", {"host": "h", "sslmode": "hush"}, "$.data.sslmode", "is none of `disable`"),
        ("oauth2", {"client_id": "c", "token_url": "hush"}, "$.data.token_url", "is no URL"),
        ("service_account", {"service_account_json": "hush"}, "$.data.service_account_json", "is no key file"),
        ("service_account", {"client_email": "a@b"}, "$.data", "needs `service_account_json` or `private_key`"),
        ("azure", {"client_id": "c"}, "$.data", "needs `tenant_id`"),
        ("snowflake", {"account": "a", "user": "u"}, "$.data", "needs `password` or `private_key`"),
        ("nats", {"user": "u"}, "$.data", "needs `url`"),
        ("postgres", {"host": ["hush"]}, "$.data.host", "is no text"),
        ("postgres", {"host": "h", "password": {"hush": 1}}, "$.data.password", "is no text"),
        ("postgres", {"host": "h", "user": True}, "$.data.user", "is no text"),
        ("postgres", {"host": "h", "port": [5432]}, "$.data.port", "is no port"),
        ("postgres", {"host": "h", "sslmode": ["require"]}, "$.data.sslmode", "is none of `disable`"),
        ("postgres", {"dsn": "hush not a dsn"}, "$.data.dsn", "is no address"),
        ("postgres", {"url": {"hush": 1}}, "$.data.url", "is no address"),
        ("postgres", {"data": "hush"}, "$.data.data", "is no map"),
        ("postgres", {"data": {"host": "h", "password": ["hush"]}}, "$.data.data.password", "is no text"),
        ("mysql", {"dsn": "hush"}, "$.data.dsn", "is no address"),
        ("bearer", {"token": ["hush"]}, "$.data.token", "`token` of a credential of type `bearer` is no text"),
        ("bearer", {"access_token": {"hush": 1}}, "$.data.access_token", "is no text"),
        ("service_account", {"service_account_json": {"hush": 1}}, "$.data.service_account_json", "is no key file"),
        ("service_account", {"service_account_json": '{"hush": 1}'}, "$.data.service_account_json", "`client_email`"),
        ("oauth2", {"client_id": "c", "grant_type": ["hush"]}, "$.data.grant_type", "is no grant"),
        ("oauth2", {"client_id": "c", "grant_type": "hush hush"}, "$.data.grant_type", "is no grant"),
        ("oauth2", {"client_id": "c", "auth_method": "hush"}, "$.data.auth_method", "is none of `basic` and `body`"),
        ("oauth2", {"client_id": "c", "auth_method": {}}, "$.data.auth_method", "is none of"),
        ("oauth2", {"client_id": "c", "ttl_seconds": "hush"}, "$.data.ttl_seconds", "is no number of seconds"),
        ("oauth2", {"client_id": "c", "ttl_seconds": -1}, "$.data.ttl_seconds", "is no number of seconds"),
        ("oauth2", {"client_id": "c", "ttl_seconds": True}, "$.data.ttl_seconds", "is no number of seconds"),
        ("oauth2", {"client_id": "c", "scopes": [{"hush": 1}]}, "$.data.scopes", "is no list of texts"),
        ("oauth2", {"client_id": "c", "data": {"client_secret": [1]}}, "$.data.data.client_secret", "is no text"),
        ("nats", {"url": [1]}, "$.data.url", "is no list of texts"),
        ("postgress", {"dsn": "x"}, "$.kind", "Did you mean 'postgres'?"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(kind: str, data: dict[str, Any], where: str, words: str) -> None:
    first = problems(kind, data)[0]
    assert first.where == where
    assert words in first.message
    assert "hush" not in first.message + first.fix
    assert first.fix


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("postgres", {"db_host": "h", "db_user": "u", "db_password": "p", "db_name": "n"}),
        ("bearer", {"access_token": "x"}),
        ("basic", {"user": "u", "password": "p"}),
        ("oauth2", {"client_id": "c", "client_secret": "s"}),
        ("generic", {"anything": {"at": "all"}}),
        ("postgres", {"host": "h", "port": "5432", "user": 7, "password": 87654321}),
        ("postgres", {"data": {"host": "h", "password": "p", "sslmode": "require"}}),
        ("postgres", {"dsn": "host=h dbname=n"}),
        ("postgres", {"dsn": "postgres:///n?host=/run/pg"}),
        ("mysql", {"dsn": "mysql+pymysql://u:p@h/n"}),
        ("oauth2", {"client_id": "c", "ttl_seconds": "60", "auth_method": "basic", "scopes": "a b"}),
        ("oauth2", {"client_id": "c", "ttl_seconds": 0.5, "grant_type": "account_credentials", "scopes": ["a", "b"]}),
        ("oauth2", {"assertion": "a", "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"}),
        ("oauth2", {"data": {"client_id": "c", "more": ["of", "it"]}, "token_url": "{{ workload.url }}"}),
        ("service_account", {"service_account_json": {"client_email": "a@b", "private_key": "k"}}),
        ("gcs", {"service_account_json": '{"client_email": "a@b", "private_key": "k"}'}),
        ("nats", {"servers": ["nats://a:4222", "nats://b:4222"]}),
    ],
)
def test_other_spellings_and_parts_are_right(kind: str, data: dict[str, Any]) -> None:
    assert problems(kind, data) == ()


WRONG_NAMES = ["", " ", "a b", "a/c", "a\\c", ".", "..", "\x00x", "a\nb", "a\x1b[2J", "a\u202eb", "\ud800", "n" * 201]


@pytest.mark.parametrize("name", WRONG_NAMES)
def test_a_name_that_a_credential_cannot_have(name: str) -> None:
    found = name_problem(name)
    assert found is not None
    assert "cannot be the name of a credential. A name has 1 to 200 characters" in found.message
    assert found.message.isprintable()
    assert len(found.message) < 250


@pytest.mark.parametrize("name", ["pg_main", "pg-main", "team.pg@eu", "Größe", "n" * 200, "...x", "a%b", "a:b", "#1?"])
def test_a_name_that_a_credential_can_have(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.asyncio
async def test_a_server_refuses_a_wrong_name(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for name in ("%00x", "a%20b", "a%0Ab%1B", "n" * 201):
            told = await served.json("PUT", f"/api/credentials/{name}", {"data": {"a": "hush-hush"}}, 422)
            assert (told["where"], "`pg_main`" in told["fix"]) == ("name", True)
        assert (await served.json("GET", "/api/credentials"))["credentials"] == []


@pytest.mark.asyncio
async def test_a_wrong_credential_is_refused_and_not_stored(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        body = {"kind": "postgres", "data": {"dsn": "postgresql://u:hush-hush@h/n", "pasword": "hush-hush"}}
        told = await served.json("PUT", "/api/credentials/pg", body, 422)
        assert told["where"] == "$.data.pasword"
        assert "hush-hush" not in str(told)
        assert (await served.json("GET", "/api/credentials"))["credentials"] == []
        await served.json("PUT", "/api/credentials/pg", {"kind": "postgres", "data": {"dsn": "host=h"}})
