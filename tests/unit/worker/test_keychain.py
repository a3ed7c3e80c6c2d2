"""What a step sees of the keychain: the declared entries that it reads, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from noetl.dsl.playbook import Keychain, Value
from noetl.worker.keychain import resolved

pytestmark = pytest.mark.asyncio
DECLARED = (
    Keychain("api"),
    Keychain("db", {"credential": Value("pg_main")}),
    Keychain("made", {"auth": Value("{{ workload.which }}")}),
    Keychain("gone"),
)


class Store:
    """Credentials by name, and which were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, name: str) -> Mapping[str, Any]:
        self.asked.append(name)
        return {"api": {"token": "t"}, "pg_main": {"dsn": "d"}, "made": {"token": "m"}}[name]


async def test_only_what_is_read_is_resolved() -> None:
    store = Store()
    assert await resolved(DECLARED, [("keychain", "api", "token"), ("ctx", "db")], store) == {"api": {"token": "t"}}
    assert store.asked == ["api"]


async def test_an_entry_may_name_another_credential() -> None:
    store = Store()
    assert await resolved(DECLARED, [("keychain", "db")], store) == {"db": {"dsn": "d"}}
    assert await resolved(DECLARED, [("keychain", "made")], store) == {"made": {"token": "m"}}


async def test_one_that_is_not_there_is_left_out() -> None:
    assert await resolved(DECLARED, [("keychain", "gone")], Store()) == {}


async def test_the_whole_keychain_is_what_is_declared() -> None:
    assert set(await resolved(DECLARED, [("keychain",)], Store())) == {"api", "db", "made"}
