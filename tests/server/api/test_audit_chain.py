"""The audit trail over HTTP: listed with references, exported and verified."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.server.serving import ONE, in_process

pytestmark = pytest.mark.asyncio


async def test_a_trail_is_listed_exported_and_verified(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.register(ONE)
        await served.register(ONE.replace("n: 1", "n: 2").replace('"n":1', '"n":2'))
        await served.json("PUT", "/api/credentials/pg", {"data": {"password": "hunter2"}})
        made = await served.json("POST", "/api/tokens", {"role": "viewer"})
        entries = (await served.json("GET", "/api/audit"))["entries"]
        assert [one["after"].split()[0] for one in entries] == ["valid", "version", "version", "version"]
        assert entries[2]["before"].startswith("version 1 ")
        assert "hunter2" not in str(entries)
        assert made["secret"] not in str(entries)
        page = await served.json("GET", "/api/audit/export?limit=3")
        assert [one["position"] for one in page["entries"]] == [1, 2, 3]
        rest = await served.json("GET", f"/api/audit/export?after={page['next']}")
        assert rest["entries"][0]["previous"] == page["entries"][-1]["hash"]
        assert rest["head"] == {"position": 4, "hash": rest["entries"][-1]["hash"]}
        assert rest["next"] is None
        found = await served.json("GET", "/api/audit/verify")
        assert found == {"is_intact": True, "entries": 4, "pending": 0, "head": rest["head"], "broken": None}
        with closing(sqlite3.connect(tmp_path / "noetl.db")) as file, file:
            file.execute("UPDATE audit SET actor = 'eve' WHERE number = 2")
        found = await served.json("GET", "/api/audit/verify")
        assert (found["is_intact"], found["entries"]) == (False, 1)
        assert (found["broken"]["reason"], found["broken"]["number"]) == ("changed", 2)
        await served.json("GET", "/api/audit/verify?expect=x", status=400)
