"""Credentials that a playbook needs: found before it starts, all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from noetl.model.errors import CredentialUnavailable, InvalidInput
from noetl.wiring.preflight import require_credentials

pytestmark = pytest.mark.asyncio


async def missing(tree: dict[str, Any], *stored: str) -> str:
    """Return what is missing with these stored credentials; empty if nothing is."""

    async def resolve(name: str) -> Mapping[str, Any]:
        if name == "sealed":
            raise CredentialUnavailable("no key")
        if name not in stored:
            raise KeyError(name)
        return {}

    try:
        await require_credentials(msgspec.json.encode(tree), resolve)
    except InvalidInput as error:
        return str(error)
    return ""


def tree(*auths: Any, keychain: list[dict[str, Any]] | None = None, url: str = "x") -> dict[str, Any]:
    tasks = [{f"t{at}": {"kind": "http", "url": url, "auth": auth}} for at, auth in enumerate(auths)]
    return {"keychain": keychain or [], "workflow": [{"step": "a", "tool": tasks}]}


async def test_every_missing_name_is_listed() -> None:
    alias = {"x": {"source": "credential", "key": "three"}, "y": {"credential": "four"}}
    told = await missing(tree("one", "two", alias), "two")
    assert [name for name in ("one", "two", "three", "four") if f"'{name}'" in told] == ["one", "three", "four"]
    assert "which step `a` needs" in told
    assert await missing(tree("one", "two", alias), "one", "two", "three", "four") == ""


@pytest.mark.parametrize(
    "auth", ["{{ workload.db }}", "pg_{{ workload.env }}", {"user": "ada"}, {"source": "env", "key": "TOKEN"}, "sealed"]
)
async def test_what_cannot_be_known_is_not_looked_for(auth: Any) -> None:
    assert await missing(tree(auth)) == ""


async def test_data_of_a_task_is_no_name_of_a_credential() -> None:
    body = {"auth": "basic", "credential": "of the customer", "kind": "http"}
    task = {"kind": "http", "json": body, "input": {"auth": "x"}, "headers": {"credential": "y"}}
    assert await missing({"workflow": [{"step": "a", "tool": [{"t": task}], "set": {"ctx.auth": "z"}}]}) == ""


async def test_a_transfer_and_a_cursor_name_their_own() -> None:
    ends = {"kind": "transfer", "source": {"kind": "duckdb", "auth": "one"}, "target": {"auth": "two"}}
    cursor = {"kind": "postgres", "auth": "three"}
    told = await missing({"workflow": [{"step": "a", "loop": {"cursor": cursor}, "tool": [{"t": ends}]}]})
    assert [name for name in ("one", "two", "three") if f"'{name}'" in told] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ({"name": "e"}, "'e'"),
        ({"name": "e", "kind": "oauth2", "credential": "client", "token_url": "u"}, "'client'"),
        ({"name": "e", "kind": "static", "token": "t"}, ""),
        ({"name": "e", "kind": "secret_manager", "provider": "vault", "auth": "reader", "secret": "s"}, "'reader'"),
        ({"name": "e", "kind": "secret_manager", "provider": "env", "secret": "s"}, ""),
        ({"name": "e", "kind": "bearer", "token": "{{ workload.t }}"}, ""),
    ],
)
async def test_an_entry_needs_the_credential_behind_it(entry: dict[str, Any], wanted: str) -> None:
    for used in (tree("e", keychain=[entry]), tree({}, keychain=[entry], url="{{ keychain.e.token }}")):
        told = await missing(used)
        assert (wanted in told, bool(told)) == (True, bool(wanted)), told
    assert await missing(tree({}, keychain=[entry])) == ""
