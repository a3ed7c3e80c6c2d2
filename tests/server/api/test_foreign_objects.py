"""Every route against objects of another namespace: they answer as unknown ones.

The routes are those of the OpenAPI document. Each is called by each role on a namespace, with an object of another
namespace, and with one that does not exist: the answers must not differ.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import pytest_asyncio

from noetl.server.api import endpoints
from noetl.server.auth.gate import ROLES
from noetl.server.http.openapi import document
from noetl.settings import ServerSettings
from tests.server.serving import FAILS, ONE, WAITS, Served, bearer, in_process, secret

pytestmark = pytest.mark.asyncio(loop_scope="module")
OPENAPI = json.loads(document())
ROUTES = [
    (method.upper(), path) for path, item in OPENAPI["paths"].items() for method in item if method != "parameters"
]
ENDPOINTS = {(one.method, one.path): one for one in endpoints()}
LIMITED = tuple(role for role in ROLES if role != "worker")
NOWHERE = "999999"  # an execution that does not exist
MARK = "hidden-mark"


class World(NamedTuple):
    served: Served
    secrets: dict[str, str]  # of each role, limited to another namespace
    foreign: dict[str, str]  # parameters that name objects of `test/`
    unknown: dict[str, str]  # parameters that name nothing


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    folder: Path = tmp_path_factory.mktemp("foreign")
    admin = await secret(folder, "admin")
    secrets = {role: await secret(folder, role, f"{role}-b", namespaces=("team-b",)) for role in LIMITED}
    async with in_process(folder, ServerSettings(auth="token")) as served, served.embedded.run_worker(""):
        served.http.headers.update(bearer(admin))
        waiting = await served.start(WAITS.replace("test/", "test/").replace("ask", MARK), tags=[MARK])
        await served.until(waiting, "waiting")
        failed = await served.start(FAILS, tags=[MARK])
        await served.until(failed, "failed")
        path = await served.register(ONE)
        await served.json("POST", "/api/schedules", {"name": MARK, "path": path, "every": "1d"})
        (letter,) = (await served.json("GET", "/api/dlq"))["letters"]
        found = await served.json("GET", f"/api/catalog/playbook?path={path}")
        del served.http.headers["Authorization"]
        foreign = {
            "execution_id": waiting, "schedule_id": MARK, "message_id": letter["message_id"], "path": path,
            "playbook": found["playbook"], "name": "n", "step": MARK, "failed": failed,
        }  # fmt: skip
        unknown = {
            "execution_id": NOWHERE, "schedule_id": "none", "message_id": f"{NOWHERE}-1", "path": "none/such",
            "playbook": "0" * 64, "name": "n", "step": MARK, "failed": NOWHERE,
        }  # fmt: skip
        yield World(served, secrets, foreign, unknown)


BODIES: dict[str, list[dict[str, Any]]] = {
    "POST /api/execute": [{"path": "{path}"}, {"playbook": "{playbook}"}, {"path": "team-b/x", "parent": "{failed}"}],
    "POST /api/try": [{"content": ONE, "from": "{execution_id}"}],
    "POST /api/executions/execute": [{"playbook_id": "{path}"}],
    "POST /api/execute/many": [{"path": "{path}", "payloads": [{}]}, {"playbook": "{playbook}", "payloads": [{}]}],
    "POST /api/executions/{execution_id}/signal": [{"name": "go"}],
    "POST /api/executions/cancel": [{"ids": ["{execution_id}"]}, {"query": {"path": "{path}"}}],
    "POST /api/executions/retry": [{"ids": ["{failed}"]}, {"query": {"path": "{path}"}}],
    "PATCH /api/executions/{execution_id}/ctx": [{"writes": {"a": 1}}],
    "POST /api/executions/{execution_id}/fork": [{"start": "ask"}, {"start": "ask", "playbook": "{playbook}"}],
    "POST /api/vars/{execution_id}": [{"writes": {"a": 1}}],
    "POST /api/schedules": [{"name": "new", "path": "{path}", "every": "1d"}],
    "PATCH /api/schedules/{schedule_id}": [{"every": "2d"}],
    "POST /api/dlq/replay": [{"execution_id": "{failed}"}, {"path": "{path}"}, {"all": True}],
    "POST /api/dlq/discard": [{"execution_id": "{failed}", "reason": "x"}, {"all": True, "reason": "x"}],
    "POST /api/dlq/{message_id}/discard": [{"reason": "x"}],
    "POST /context/render": [{"execution_id": "{execution_id}", "template": "{{ workload }}"}],
}
QUERIES: dict[str, list[dict[str, str]]] = {
    "GET /api/executions/{execution_id}/runs": [{"run": "ask#1"}],
    "GET /api/executions/{execution_id}/items": [{"run": "ask#1"}],
    "GET /api/executions/{execution_id}/compare": [{"with": "{failed}"}, {"with": "last-good"}],
    "GET /api/catalog/playbook": [{"path": "{path}"}],
    "GET /api/catalog/versions": [{"path": "{path}"}],
    "GET /api/catalog/diff": [{"path": "{path}"}],
    "GET /api/catalog/ui_schema": [{"path": "{path}"}],
    "DELETE /api/catalog": [{"path": "{path}"}],
    "GET /api/keychain": [{"path": "{path}"}, {"execution_id": "{execution_id}"}],
    "GET /api/results/resolve": [{"ref": "noetl://execution/{execution_id}/x"}],
    "GET /api/executions": [{}, {"cursor": "{failed}"}, {"path": "{path}"}, {"search": MARK}, {"tag": MARK}],
    "GET /api/statistics": [{}, {"path": "{path}"}, {"path": "{path}", "by": "step"}],
    "GET /api/dlq": [{}, {"cursor": "{message_id}"}, {"execution_id": "{failed}"}],
    "GET /api/dlq/groups": [{}, {"execution_id": "{failed}"}],
    "GET /api/schedules": [{}, {"path": "{path}"}],
    "GET /api/catalog": [{}, {"search": "one"}],
}


def filled(given: Any, names: dict[str, str]) -> Any:
    """Put the names of objects into a template of a request."""
    text = json.dumps(given)
    for name, value in names.items():
        text = text.replace("{" + name + "}", value)
    return json.loads(text)


async def ask(world: World, method: str, path: str, role: str, names: dict[str, str], which: int) -> httpx.Response:
    """Send one request that names these objects."""
    name = f"{method} {path}"
    bodies, queries = BODIES.get(name, [{}]), QUERIES.get(name, [{}])
    endpoint = ENDPOINTS[method, path]
    body = filled(bodies[min(which, len(bodies) - 1)], names) if endpoint.body is not None else None
    query = filled(queries[min(which, len(queries) - 1)], names)
    where = filled(path, names)
    headers = bearer(world.secrets[role])
    if endpoint.gives == "text/event-stream":
        headers["Last-Event-ID"] = "nonsense"  # it would go on for ever
    return await world.served.http.request(method, where, headers=headers, json=body, params=query)


def said(answer: httpx.Response, names: dict[str, str]) -> tuple[int, str]:
    """Return status and body of an answer, with the names of its objects taken out."""
    text = answer.text
    for value in sorted(names.values(), key=len, reverse=True):
        text = text.replace(value, "NAME")
    return answer.status_code, text


CASES = [
    (method, path, which)
    for method, path in ROUTES
    if path not in ("/health", "/ready", "/docs", "/api/openapi.json")
    for which in range(max(len(BODIES.get(f"{method} {path}", [0])), len(QUERIES.get(f"{method} {path}", [0]))))
]


@pytest.mark.parametrize("role", LIMITED)
@pytest.mark.parametrize(("method", "path", "which"), CASES)
async def test_a_foreign_object_answers_as_an_unknown_one(
    world: World, method: str, path: str, which: int, role: str
) -> None:
    foreign = await ask(world, method, path, role, world.foreign, which)
    unknown = await ask(world, method, path, role, world.unknown, which)
    assert said(foreign, world.foreign) == said(unknown, world.unknown)
    assert foreign.status_code < 500
    hidden = set(world.foreign.values()) - set(world.unknown.values())
    assert not [value for value in hidden if value in unknown.text]


async def test_every_route_is_of_the_document() -> None:
    assert {(one.method, one.path) for one in endpoints()} == set(ROUTES)


async def test_no_role_on_a_namespace_has_changed_anything(world: World) -> None:
    """Check what the requests before this one wanted to cancel, delete or patch."""
    store = world.served.services.store
    row = await store.execution(world.foreign["execution_id"])
    assert row is not None
    assert row["status"] == "waiting"
    letter = await store.letter(world.foreign["message_id"])
    assert letter is not None
    assert letter.status == "pending"
    assert await store.find(world.foreign["path"]) is not None
    schedule = await world.served.services.schedules.schedule(MARK)
    assert schedule is not None
    assert (schedule.revision, schedule.paused) == (1, False)
