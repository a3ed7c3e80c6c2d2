"""Starts on a server are refused when credentials are surely missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.model.errors import InvalidInput
from noetl.model.messages import Start
from noetl.ports import WorkerInfo
from tests.server.serving import Served, in_process, listening, playbook, session

pytestmark = pytest.mark.asyncio
WANTS = playbook(
    "  - step: first\n    tool: {kind: noop}\n    next: load\n"
    "  - step: load\n    tool: [{pull: {kind: http, url: 'http://127.0.0.1:1/', auth: shop_api}},"
    " {push: {kind: postgres, query: SELECT 1, auth: warehouse}}]\n",
    "wants",
)
LATER = playbook(
    "  - step: a\n    tool: {kind: http, url: x, auth: '{{ workload.name }}'}\n", "later", workload={"name": "x"}
)


async def ready(
    served: Served, pool: str = "", credentials: tuple[str, ...] | None = (), name: str = "w1"
) -> WorkerInfo:
    now = served.services.clock.now()
    info = WorkerInfo(name, pool, registered_at=now, seen_at=now, credentials=credentials)
    await served.services.team.enlist(info)
    return info


async def put(served: Served, name: str) -> None:
    await served.json("PUT", f"/api/credentials/{name}", {"kind": "generic", "data": {"token": "s3cret-token"}})


async def names(served: Served, path: str = "/api/execute", **more: Any) -> list[str]:
    """Return the missing credentials with which a start is refused."""
    refused = await served.json("POST", path, {"path": "test/wants", **more}, 422)
    assert refused["type"] == "about:blank#missing-credentials"
    assert "noetl credential put" in refused["fix"]
    return [one["credential"] for one in refused["errors"]]


async def test_a_start_lists_all_that_is_missing_and_writes_nothing(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.register(WANTS)
        await ready(served)
        refused = await served.json("POST", "/api/execute", {"path": "test/wants"}, 422)
        assert refused["errors"] == [
            {
                "credential": name,
                "used_by": [f"task `{task}` of step `load`"],
                "message": f"unknown credential '{name}', which task `{task}` of step `load` needs",
            }
            for name, task in (("shop_api", "pull"), ("warehouse", "push"))
        ]
        await put(served, "shop_api")
        assert await names(served) == ["warehouse"]
        assert await names(served, "/api/execute/many", payloads=[{}, {}]) == ["warehouse"]
        assert (await served.json("GET", "/api/executions"))["executions"] == []
        await put(served, "warehouse")
        await served.json("POST", "/api/execute", {"path": "test/wants"}, 201)


async def test_a_name_that_a_template_yields_is_found_out_later(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await ready(served)
        await served.start(LATER)


@pytest.mark.parametrize("own", [None, ("SHOP_API", "WAREHOUSE")], ids=["not reported", "reported"])
async def test_what_a_worker_may_have_is_not_missing(tmp_path: Path, own: tuple[str, ...] | None) -> None:
    async with in_process(tmp_path) as served:
        await served.register(WANTS)
        await served.json("POST", "/api/execute", {"path": "test/wants"}, 201)  # there is no worker yet
        await ready(served, "gpu", ())
        await served.json("POST", "/api/execute", {"path": "test/wants"}, 201)  # nor one of this pool
        worker = await ready(served, credentials=())
        assert await names(served) == ["shop_api", "warehouse"]
        await served.services.team.enlist(replace(worker, credentials=own))
        await served.json("POST", "/api/execute", {"path": "test/wants"}, 201)


async def test_the_environment_of_the_server_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with in_process(tmp_path) as served:
        await served.register(WANTS)
        await ready(served)
        monkeypatch.setenv("NOETL_CREDENTIAL_SHOP_API", "token")
        assert await names(served) == ["warehouse"]


async def test_a_worker_reports_what_it_has_with_its_hello(tmp_path: Path) -> None:
    async with listening(tmp_path) as served:
        await served.register(WANTS)
        async with session(served, credentials=("SHOP_API",)):
            assert await names(served) == ["warehouse"]
            [row] = (await served.json("GET", "/api/workers"))["workers"]
            assert "credentials" not in row


async def test_schedules_and_triggers_get_the_same_error(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        made = await served.json("POST", "/api/catalog", {"content": WANTS})
        await ready(served)
        start = Start("m1", "test/wants", made["playbook"], {}, tags=("schedule:nightly",))
        with pytest.raises(InvalidInput, match="'warehouse', which task `push` of step `load` needs"):
            await served.services.control.submit("1", start)
        child = replace(start, parent={"execution_id": "2", "run_id": "call#1"})
        await served.services.control.submit("3", child)  # a child fails in the task that needs one
