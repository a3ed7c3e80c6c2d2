"""One answer for a start page."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.settings import ServerSettings
from tests.server.serving import FAILS, ONE, WAITS, bearer, in_process, playbook, secret

pytestmark = pytest.mark.asyncio

GPU = playbook("  - step: a\n    spec: {pool: gpu}\n    tool: {kind: noop}\n", "gpu")


async def test_the_overview_counts_and_names_what_needs_a_person(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        one, waits, fails = await served.start(ONE), await served.start(WAITS), await served.start(FAILS)
        await served.until(one, "completed")
        await served.until(waits, "waiting")
        await served.until(fails, "failed")
        queued = await served.start(GPU)
        found = await served.json("GET", "/api/overview")
        assert found["now"] == {"counts": {"pending": 0, "running": 1, "waiting": 1, "paused": 0}, "is_whole": True}
        counts = {"completed": 1, "waiting": 1, "failed": 1, "running": 1}
        assert found["day"] == {"counts": counts, "is_whole": True}
        assert (len(found["buckets"]), sum(sum(one["counts"].values()) for one in found["buckets"])) == (48, 4)
        needs = {need["cause"]: need for need in found["needs"]}
        assert set(needs) == {"signal", "letters", "worker"}
        assert (needs["signal"]["execution"]["execution_id"], needs["signal"]["execution"]["signals"]) == (
            waits,
            ["go"],
        )
        assert (needs["letters"]["group"]["count"], needs["worker"]["pool"]["pool"]) == (1, "gpu")
        assert [row["execution_id"] for row in found["recent"]] == [queued, fails, waits, one]


async def test_an_overview_of_a_namespace_shows_nothing_of_others(tmp_path: Path) -> None:
    theirs = bearer(await secret(tmp_path, "viewer", "theirs", namespaces=["other/"]))
    ours = bearer(await secret(tmp_path, "editor", "ours", namespaces=["test/"]))
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        await served.json("POST", "/api/catalog", {"content": ONE}, headers=ours)
        await served.json("POST", "/api/execute", {"path": "test/one"}, headers=ours)
        mine = await served.json("GET", "/api/overview", headers=ours)
        assert (len(mine["recent"]), mine["day"]["counts"], mine["pools"]) == (1, {"running": 1}, [])
        other = await served.json("GET", "/api/overview", headers=theirs)
        assert (other["recent"], other["day"]["counts"], sum(other["now"]["counts"].values())) == ([], {}, 0)
