"""The graph of a playbook, laid out for a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.settings import ServerSettings
from tests.server.serving import TWO, bearer, in_process, playbook, secret

pytestmark = pytest.mark.asyncio

LOOP = playbook(
    "  - step: each\n    loop: {in: [1, 2], iterator: n, spec: {max_in_flight: 2}}\n    tool: {kind: noop}\n"
    "    next: {arcs: [{step: last, when: '{{ ctx.go }}'}]}\n"
    "  - {step: last, tool: {kind: noop}}\n",
    "loop",
)


async def test_the_graph_has_places_and_lines_of_the_text(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        found = await served.json("POST", "/api/catalog", {"content": LOOP})
        answer = await served.http.get(f"/api/playbooks/{found['playbook']}/graph")
        assert "immutable" in answer.headers["cache-control"]
        graph = answer.json()
        assert (graph["hash"], graph["path"], graph["entry"]) == (found["playbook"], "test/loop", "each")
        each, last = graph["nodes"]
        assert (each["name"], each["width"], each["height"], each["line"], each["column"]) == ("each", 200, 64, 5, 11)
        assert each["loop"] == {"iterator": "n", "over": "[1, 2]", "mode": "sequential", "max_in_flight": "2"}
        assert (last["level"], last["line"]) == (1, 9)
        assert last["y"] > each["y"] + each["height"]
        (edge,) = graph["edges"]
        assert (edge["source"], edge["arc"], edge["kind"], edge["when"]) == ("each", 0, "next", "ctx.go")


async def test_lines_are_those_of_the_wanted_version(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        found = await served.json("POST", "/api/catalog", {"content": TWO})
        later = await served.json("POST", "/api/catalog", {"content": f"# a comment\n{TWO}"})
        assert (later["playbook"], later["version"]) == (found["playbook"], 2)
        graph = f"/api/playbooks/{found['playbook']}/graph"
        lines = {
            version: [node["line"] for node in (await served.json("GET", f"{graph}{version}"))["nodes"]]
            for version in ("", "?version=1", "?version=2", "?version=3")
        }
        assert lines == {"": [5, 8], "?version=1": [5, 8], "?version=2": [6, 9], "?version=3": [None, None]}


async def test_a_playbook_started_by_its_text_has_lines_too(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        started = await served.json("POST", "/api/execute", {"content": TWO})
        graph = await served.json("GET", f"/api/playbooks/{started['playbook']}/graph")
        assert [node["line"] for node in graph["nodes"]] == [5, 8]


async def test_a_graph_outside_the_callers_namespaces_does_not_exist(tmp_path: Path) -> None:
    theirs = bearer(await secret(tmp_path, "viewer", "theirs", namespaces=["other/"]))
    ours = bearer(await secret(tmp_path, "editor", "ours", namespaces=["test/"]))
    async with in_process(tmp_path, ServerSettings(auth="token")) as served:
        found = await served.json("POST", "/api/catalog", {"content": TWO}, headers=ours)
        graph = f"/api/playbooks/{found['playbook']}/graph"
        assert len((await served.json("GET", graph, headers=ours))["nodes"]) == 2
        await served.json("GET", graph, status=404, headers=theirs)
        await served.json("GET", f"/api/playbooks/{'0' * 64}/graph", status=404, headers=ours)
