"""The catalog over HTTP: register with diagnostics, versions, diff, forms, delete."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.serving import ONE, TWO, in_process, playbook

pytestmark = pytest.mark.asyncio


async def test_a_playbook_is_registered_once_per_content(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        first = await served.json("POST", "/api/catalog", {"content": ONE}, 201)
        again = await served.json("POST", "/api/catalog", {"content": ONE}, 201)
        assert (first["version"], again["version"]) == (1, 1)
        other = await served.json(
            "POST", "/api/catalog", {"content": ONE.replace("{n: 1}", "{n: 2}").replace('"n":1', '"n":2')}, 201
        )
        assert other["version"] == 2
        found = await served.json("GET", "/api/catalog/playbook?path=test/one&version=1")
        assert found["content"] == ONE
        versions = (await served.json("GET", "/api/catalog/versions?path=test/one"))["versions"]
        assert [row["version"] for row in versions] == [2, 1]
        difference = await served.json("GET", "/api/catalog/diff?path=test/one")
        assert (difference["since"], difference["version"]) == (1, 2)
        assert difference["changes"] == [{"path": "workload.n", "before": 1, "after": 2}]
        assert "\n-" in difference["text"]


async def test_errors_are_told_all_at_once_with_place_and_fix(tmp_path: Path) -> None:
    text = playbook("  - step: a\n    tool: {kind: nonsense}\n    next: nowhere\n")
    async with in_process(tmp_path) as served:
        told = await served.json("POST", "/api/catalog", {"content": text}, 422)
        codes = {one["code"]: one for one in told["errors"] if one["severity"] == "error"}
        assert len(codes) >= 2
        assert all(one["line"] > 0 and one["fix"] for one in codes.values())
        assert (await served.json("GET", "/api/catalog"))["playbooks"] == []


async def test_a_check_stores_nothing_and_a_wrong_path_is_refused(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        checked = await served.json("POST", "/api/catalog", {"content": ONE, "check_only": True}, 201)
        assert checked["version"] == 0
        await served.json("POST", "/api/catalog", {"content": ONE, "path": "other"}, 409)
        assert (await served.json("GET", "/api/catalog"))["playbooks"] == []


async def test_paths_are_listed_in_pages_and_deleted(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.register(ONE)
        await served.register(TWO)
        page = await served.json("GET", "/api/catalog?limit=1")
        assert [row["path"] for row in page["playbooks"]] == ["test/one"]
        rest = await served.json("GET", f"/api/catalog?limit=5&cursor={page['next']}")
        assert [row["path"] for row in rest["playbooks"]] == ["test/two"]
        assert [row["path"] for row in (await served.json("GET", "/api/catalog?search=TWO"))["playbooks"]] == [
            "test/two"
        ]
        assert (await served.json("DELETE", "/api/catalog?path=test/one"))["removed"] == 1
        for route in ("playbook", "versions", "diff", "ui_schema"):
            await served.json("GET", f"/api/catalog/{route}?path=test/one", None, 404)
        await served.json("DELETE", "/api/catalog?path=test/one", None, 404)


async def test_a_form_gets_the_schema_and_the_defaults(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}
    text = playbook(
        "  - step: a\n    tool: {kind: noop}\n",
        workload={"city": "Rome", "days": 3, "loud": True, "tags": []},
        executor={"spec": {"workload_schema": schema}},
    )
    async with in_process(tmp_path) as served:
        await served.register(text)
        form = await served.json("GET", "/api/catalog/ui_schema?path=test/play")
        kinds = {name: one.get("type") for name, one in form["schema"]["properties"].items()}
        assert kinds == {"city": "string", "days": "integer", "loud": "boolean", "tags": "array"}
        assert form["schema"]["required"] == ["city"]
        assert form["defaults"]["days"] == 3


async def test_a_kind_that_cannot_run_is_a_warning_here_and_an_error_at_the_start(tmp_path: Path) -> None:
    text = playbook("  - step: load\n    tool: {kind: snowflake, auth: sf, query: SELECT 1}\n")
    async with in_process(tmp_path) as served:
        told = await served.json("POST", "/api/catalog", {"content": text}, 201)
        (warning,) = (one for one in told["diagnostics"] if one["code"] == "NOE511")
        assert (warning["severity"], warning["line"]) == ("warning", 6)
        refused = await served.json("POST", "/api/execute", {"path": told["path"]}, 422)
        assert "step 'load' needs the kind `snowflake`" in refused["detail"]
        assert (await served.json("GET", "/api/executions"))["executions"] == []


async def test_the_catalog_is_searched_by_what_playbooks_say_of_themselves(tmp_path: Path) -> None:
    said = {"a": "description: Loads Orders", "b": "tags: [nightly, eu]", "c": "labels: {team: data}"}
    async with in_process(tmp_path) as served:
        for name, more in said.items():
            await served.register(ONE.replace("name: one, path: test/one", f"name: n{name}, path: test/{name}, {more}"))

        async def found(query: str) -> list[str]:
            return [one["path"][-1] for one in (await served.json("GET", f"/api/catalog?{query}"))["playbooks"]]

        assert await found("search=orders") == ["a"]
        assert await found("search=NB") == ["b"]
        assert await found("search=night") == await found("tag=eu") == ["b"]
        assert await found("label=team") == await found("label=team%3Ddata") == await found("search=data") == ["c"]
        assert await found("label=team%3Dother") == await found("tag=night") == await found("search=tags") == []
        assert await found("limit=2") == ["a", "b"]
        assert await found("limit=2&cursor=test/b") == ["c"]
        entry = (await served.json("GET", "/api/catalog?tag=eu"))["playbooks"][0]
        assert (entry["name"], entry["tags"], entry["recent"]) == ("nb", ["nightly", "eu"], [])


async def test_the_catalog_shows_the_last_executions_without_trials(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        path = await served.register(ONE)
        started = [(await served.json("POST", "/api/execute", {"path": path}))["execution_id"] for _ in range(3)]
        await served.json("POST", "/api/try", {"content": ONE})
        (entry,) = (await served.json("GET", "/api/catalog?recent=2"))["playbooks"]
        assert [one["execution_id"] for one in entry["recent"]] == started[:0:-1]


async def test_a_version_that_the_caller_has_not_seen_is_a_conflict(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.json("POST", "/api/catalog", {"content": ONE, "expected": 0}, status=201)
        other = ONE.replace("{n: 1}", "{n: 2}").replace('{"n":1}', '{"n":2}')
        await served.json("POST", "/api/catalog", {"content": other, "expected": 1}, status=201)
        mine = ONE + "# mine\n"
        refused = await served.json("POST", "/api/catalog", {"content": mine, "expected": 1}, status=409)
        assert refused["detail"].startswith("The latest version of `test/one` is 2, not 1.")
        assert len((await served.json("GET", "/api/catalog/versions?path=test/one"))["versions"]) == 2
