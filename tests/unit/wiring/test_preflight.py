"""Credentials that a local run needs: looked for before it starts, all at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from noetl.model.errors import CredentialUnavailable, MissingCredentials
from noetl.wiring.preflight import require_credentials

pytestmark = pytest.mark.asyncio


async def resolve(name: str) -> Mapping[str, Any]:
    if name == "sealed":
        raise CredentialUnavailable("no key")
    if name != "stored":
        raise KeyError(name)
    return {}


def canonical(*names: str) -> bytes:
    tasks = [{f"t{at}": {"kind": "http", "auth": name}} for at, name in enumerate(names)]
    return msgspec.json.encode({"workflow": [{"step": "a", "tool": tasks}]})


async def test_all_missing_ones_are_listed() -> None:
    with pytest.raises(MissingCredentials) as refused:
        await require_credentials(canonical("one", "stored", "two", "one"), resolve)
    text = str(refused.value)
    assert "unknown credential 'one', which task `t0` of step `a` and task `t3` of step `a` needs" in text
    assert "'two'" in text
    assert "'stored'" not in text
    assert "nothing was run" in text


async def test_one_that_cannot_be_read_now_exists() -> None:
    await require_credentials(canonical("stored", "sealed"), resolve)
