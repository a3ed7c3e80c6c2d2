"""Roles on namespaces: what a limited token sees and changes, and what not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from noetl.model.errors import InvalidInput
from noetl.server.auth.gate import Actor, create_token, may, reach
from noetl.server.auth.namespaces import is_within, namespaces_of
from noetl.settings import ServerSettings
from tests.server.serving import ONE, WAITS, Served, bearer, in_process, listening, secret, session

pytestmark = pytest.mark.asyncio
MINE = WAITS.replace("test/", "team-b/")


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    admin = await secret(tmp_path, "admin")
    async with in_process(tmp_path, ServerSettings(auth="token")) as found, found.embedded.run_worker(""):
        found.http.headers.update(bearer(admin))
        yield found


async def token(served: Served, role: str, *namespaces: str) -> dict[str, str]:
    made = await served.json("POST", "/api/tokens", {"role": role, "namespaces": namespaces})
    return bearer(made["secret"])


async def test_a_limited_token_works_in_its_namespace(served: Served) -> None:
    editor = await token(served, "editor", "team-b")
    await served.start(WAITS)
    made = await served.json("POST", "/api/catalog", {"content": MINE}, headers=editor)
    started = await served.json("POST", "/api/execute", {"path": made["path"]}, headers=editor)
    name = started["execution_id"]
    await served.until(name, "waiting")
    for path in ("", "/events", "/state", "/explain"):
        await served.json("GET", f"/api/executions/{name}{path}", headers=editor)
    rows = await served.json("GET", "/api/executions?limit=1", headers=editor)
    assert [row["execution_id"] for row in rows["executions"]] == [name]
    rows = await served.json("GET", "/api/catalog", headers=editor)
    assert [row["path"] for row in rows["playbooks"]] == ["team-b/waits"]
    asked = {"name": "s", "path": "team-b/waits", "every": "1d"}
    await served.json("POST", "/api/schedules", asked, headers=editor)
    await served.json("POST", "/api/schedules/s/pause", headers=editor)
    await served.json("POST", "/context/render", {"execution_id": name, "template": "x"}, headers=editor)
    await served.json("POST", f"/api/executions/{name}/cancel", {}, headers=editor)
    await served.json("DELETE", f"/api/executions/{name}", status=403, headers=editor)


async def test_a_page_is_filled_with_what_is_seen(served: Served) -> None:
    """Foreign rows between own ones take no place of a page."""
    mine = [await served.start(ONE.replace("test/", "team-b/")) for _ in range(2)]
    for _ in range(3):
        await served.start(ONE)
    mine += [await served.start(ONE.replace("test/", "team-b/"))]
    viewer = await token(served, "viewer", "team-b/")
    first = await served.json("GET", "/api/executions?limit=2", headers=viewer)
    rest = await served.json("GET", f"/api/executions?limit=2&cursor={first['next']}", headers=viewer)
    assert [row["execution_id"] for page in (first, rest) for row in page["executions"]] == mine[::-1]


async def test_an_editor_registers_only_in_the_own_namespaces(served: Served) -> None:
    editor = await token(served, "editor", "team-b")
    for content in (ONE, ONE.replace("test/", "team-bb/"), ONE.replace("test/one", "team-b")):
        await served.json("POST", "/api/catalog", {"content": content}, 403, headers=editor)
        await served.json("POST", "/api/execute", {"content": content}, 403, headers=editor)
    assert (await served.json("GET", "/api/catalog"))["playbooks"] == []


async def test_a_role_of_one_namespace_is_not_that_of_another(served: Served) -> None:
    """The object is seen in the one, so the answer to a change is 403 and not 404."""
    name, other = await served.start(MINE), await served.start(WAITS)
    gate = served.services.gate
    viewer = Actor("ada", "", None, None, (("team-b/", "viewer"), ("team-c/", "admin")))

    async def who(*_: Any) -> Actor:
        return viewer

    gate.who = who  # type: ignore[method-assign, assignment]
    await served.json("GET", f"/api/executions/{name}")
    await served.json("POST", f"/api/executions/{name}/cancel", {}, 403)
    await served.json("DELETE", "/api/catalog?path=team-b/waits", status=403)
    await served.json("GET", "/api/catalog/playbook?path=team-b/waits")
    await served.json("POST", f"/api/executions/{other}/cancel", {}, 404)
    await served.json("GET", "/api/workers", status=403)
    await served.json("GET", "/metrics", status=403)


async def test_the_stream_of_all_has_only_own_events(tmp_path: Path) -> None:
    own = await secret(tmp_path, "admin")
    limited = await secret(tmp_path, "viewer", namespaces=("team-b",))
    async with listening(tmp_path, ServerSettings(auth="token")) as served, served.embedded.run_worker(""):
        served.http.headers.update(bearer(own))
        async with served.http.stream("GET", "/api/executions/stream", headers=bearer(limited)) as stream:
            lines = stream.aiter_lines()
            await anext(lines)
            await served.until(await served.start(ONE), "completed")
            mine = await served.start(ONE.replace("test/", "team-b/"))
            found = [line async for line in _until_end(lines)]
        data = [line for line in found if line.startswith("data:") and "execution_id" in line]
        assert data
        assert all(mine in line for line in data)


async def _until_end(lines: Any) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        if line.startswith("event: playbook.processed"):
            yield await anext(lines)
            return


async def test_a_worker_needs_its_role_everywhere(tmp_path: Path) -> None:
    limited = await secret(tmp_path, "admin", namespaces=("team-b",))
    async with listening(tmp_path, ServerSettings(auth="token")) as served:
        answer = await served.http.post("/api/worker/hello", json={"worker": "w"}, headers=bearer(limited))
        assert answer.status_code == 403
        with pytest.raises(AssertionError):
            async with session(served, token=limited):
                pass


async def test_the_last_use_of_a_token_is_shown(served: Served) -> None:
    made = await served.json("POST", "/api/tokens", {"role": "viewer", "namespaces": ["team-b/x"]})
    assert (made["namespaces"], made["used_at"]) == (["team-b/x/"], None)
    await served.json("GET", "/api/executions", headers=bearer(made["secret"]))
    rows = {row["token_id"]: row for row in (await served.json("GET", "/api/tokens"))["tokens"]}
    assert rows[made["token_id"]]["used_at"] >= made["created_at"]


async def test_namespaces_have_one_spelling() -> None:
    assert namespaces_of(["a", "a/", "a/b-c/d.e/"]) == ("a/", "a/b-c/d.e/")
    for wrong in ("", "/", "/a", "a//b", "a b", "é", "*", "a/../b/*", "x" * 300):
        with pytest.raises(InvalidInput):
            namespaces_of([wrong])
    with pytest.raises(InvalidInput):
        namespaces_of([f"n{number}" for number in range(101)])
    assert is_within("a/b", ("a/",))
    assert not is_within("ab/c", ("a/",))
    assert not is_within("a", ("a/",))
    assert not is_within("a/b", ())
    assert is_within("a/b", None)


async def test_roles_reach_where_they_are_granted() -> None:
    ada = Actor("ada", "viewer", None, None, (("a/", "operator"), ("b/", "admin")))
    assert reach(ada, "viewer") is None
    assert reach(ada, "operator") == ("a/", "b/")
    assert reach(ada, "admin") == ("b/",)
    assert reach(ada, "worker") == ("b/",)
    assert may(ada, "admin")
    assert not may(Actor("bob", "", grants=(("a/", "viewer"),)), "operator")
    with pytest.raises(InvalidInput, match="pool"):
        create_token("worker", "", None, None, "x", 1, ["a/"])
