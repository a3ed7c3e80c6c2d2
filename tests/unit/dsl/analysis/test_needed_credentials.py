"""Credentials that a playbook surely needs, with what uses them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from noetl.dsl.analysis.needed_credentials import Need, needed_credentials


def needs(tree: dict[str, Any]) -> dict[str, Need]:
    return {need.name: need for need in needed_credentials(msgspec.json.encode(tree))}


def tree(*auths: Any, keychain: list[dict[str, Any]] | None = None, url: str = "x") -> dict[str, Any]:
    tasks = [{f"t{at}": {"kind": "http", "url": url, "auth": auth}} for at, auth in enumerate(auths)]
    return {"keychain": keychain or [], "workflow": [{"step": "a", "tool": tasks}]}


def test_every_form_of_auth_names_its_credentials() -> None:
    alias = {"x": {"source": "credential", "key": "three"}, "y": {"credential": "four"}}
    vault = {"source": "vault", "key": "secret/db", "auth": "five"}
    found = needs(tree("one", "two", alias, vault, "one"))
    assert list(found) == ["one", "two", "three", "four", "five"]
    assert found["one"].places == ("task `t0` of step `a`", "task `t4` of step `a`")
    assert found["one"].pools == {""}


@pytest.mark.parametrize(
    "auth", ["{{ workload.db }}", "pg_{{ workload.env }}", {"user": "ada"}, {"source": "env", "key": "TOKEN"}, ""]
)
def test_what_cannot_be_known_is_not_looked_for(auth: Any) -> None:
    assert needs(tree(auth)) == {}


def test_data_of_a_task_is_no_name_of_a_credential() -> None:
    body = {"auth": "basic", "credential": "of the customer", "kind": "http"}
    task = {"kind": "http", "json": body, "input": {"auth": "x"}, "headers": {"credential": "y"}}
    assert needs({"workflow": [{"step": "a", "tool": [{"t": task}], "set": {"ctx.auth": "z"}}]}) == {}


def test_a_transfer_a_cursor_and_a_secret_name_their_own() -> None:
    ends = {"kind": "transfer", "source": {"kind": "duckdb", "auth": "one"}, "target": {"auth": "two"}}
    cursor = {"kind": "postgres", "auth": "three"}
    secrets = [
        {"s": {"kind": "secrets", "secret": "four"}},
        {"m": {"kind": "secrets", "provider": "aws", "secret": "not stored", "auth": "five"}},
    ]
    found = needs({"workflow": [{"step": "a", "loop": {"cursor": cursor}, "tool": [{"t": ends}, *secrets]}]})
    assert sorted(found) == ["five", "four", "one", "three", "two"]
    assert found["three"].places == ("the cursor of step `a`",)


def test_a_task_of_the_workbook_counts_where_it_is_called() -> None:
    book = [{"load": {"kind": "postgres", "auth": "pg"}}, {"unused": {"kind": "http", "auth": "other"}}]
    calls = [{"load": {"kind": "workbook"}}, {"again": {"kind": "workbook", "task": "load"}}]
    found = needs({"workbook": book, "workflow": [{"step": "a", "tool": calls}]})
    assert {name: need.places for name, need in found.items()} == {
        "pg": ("task `load` of step `a`", "task `again` of step `a`")
    }


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"name": "e"}, ["e"]),
        ({"name": "e", "kind": "oauth2", "credential": "client", "token_url": "u"}, ["client"]),
        ({"name": "e", "kind": "static", "token": "t", "auth": "ignored"}, []),
        ({"name": "e", "kind": "secret_manager", "provider": "vault", "auth": "reader", "secret": "s"}, ["reader"]),
        ({"name": "e", "kind": "secret_manager", "provider": "env", "secret": "s"}, []),
        ({"name": "e", "kind": "secret_manager", "map": {"key": "one", "pin": "projects/p/secrets/two/versions/1"}}, ["one"]),
        ({"name": "e", "kind": "http", "url": "u", "auth": "web"}, ["web"]),
        ({"name": "e", "kind": "bearer", "token": "{{ workload.t }}"}, []),
    ],
)  # fmt: skip
def test_an_entry_needs_the_credential_behind_it(entry: dict[str, Any], wanted: list[str]) -> None:
    for used in (tree("e", keychain=[entry]), tree({}, keychain=[entry], url="{{ keychain.e.token }}")):
        assert list(needs(used)) == wanted
    assert needs(tree({}, keychain=[entry])) == {}


def test_entries_are_followed_through_other_entries() -> None:
    chain = [
        {"name": "login", "kind": "secret_manager", "provider": "vault", "auth": "reader", "secret": "s"},
        {"name": "reader", "credential": "vault_token"},
        {"name": "api", "kind": "bearer", "token": "{{ keychain.login.token }} {{ keychain.api.token }}"},
    ]
    found = needs(tree("api", keychain=chain))
    assert {name: need.places for name, need in found.items()} == {
        "vault_token": ("`keychain.api` in task `t0` of step `a`",)
    }


@pytest.mark.parametrize(
    ("step", "executor", "pool"),
    [
        ({}, {"pool": "gpu"}, "gpu"),
        ({"spec": {"pool": "big"}}, {"pool": "gpu"}, "big"),
        ({"spec": {"pool": "{{ workload.pool }}"}}, {}, None),
        ({"spec": {"requires": {"tags": ["gpu"]}}}, {}, None),
    ],
)
def test_the_pool_of_a_step_resolves_its_credentials(step: Any, executor: Any, pool: str | None) -> None:
    task = {"kind": "http", "auth": "one"}
    found = needs({"executor": {"spec": executor}, "workflow": [{"step": "a", "tool": [{"t": task}], **step}]})
    assert found["one"].pools == {pool}
