"""Every route against every role, generated from the routes' declarations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import get_args

import pytest
import pytest_asyncio

from noetl.server.api import endpoints
from noetl.server.app import routes
from noetl.server.auth.gate import ROLES, Role
from noetl.server.http.endpoint import Endpoint
from noetl.settings import ServerSettings
from tests.server.serving import Served, address_of, bearer, in_process, secret

pytestmark = pytest.mark.asyncio(loop_scope="module")
RANKS = {"viewer": 1, "operator": 2, "editor": 3, "admin": 4}
ENDPOINTS = endpoints()
WHO = ("nobody", *ROLES)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Served, dict[str, str]]]:
    folder: Path = tmp_path_factory.mktemp("matrix")
    secrets = {role: await secret(folder, role) for role in ROLES}
    async with in_process(folder, ServerSettings(auth="token")) as found:
        yield found, secrets


def allowed(endpoint: Endpoint, who: str) -> bool:
    """Who may, said once more and in other words than the server's."""
    if endpoint.role == "open":
        return True
    if endpoint.role in ("member", "user"):
        return who != "nobody"
    if endpoint.role == "worker":
        return who in ("worker", "admin")
    return RANKS.get(who, 0) >= RANKS[endpoint.role]


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
async def test_a_route_is_open_to_its_role_only(
    served: tuple[Served, dict[str, str]], endpoint: Endpoint, who: str
) -> None:
    server, secrets = served
    headers = {} if who == "nobody" else bearer(secrets[who])
    body = b"{" if endpoint.body is not None else None
    if endpoint.gives == "text/event-stream" and "{" not in endpoint.path and allowed(endpoint, who):
        headers["Last-Event-ID"] = "nonsense"  # it would go on for ever
    answer = await server.http.request(endpoint.method, address_of(endpoint), headers=headers, content=body)
    if allowed(endpoint, who):
        assert answer.status_code not in (401, 403, 500), answer.text
    else:
        assert answer.status_code == (401 if who == "nobody" else 403), answer.text
        assert answer.json()["fix"]


async def test_every_route_declares_a_role_and_every_change_its_act() -> None:
    for endpoint in ENDPOINTS:
        assert endpoint.role in get_args(Role), endpoint.name
        assert endpoint.summary.endswith("."), endpoint.name
        silent = endpoint.path in ("/context/render", "/api/hooks/{webhook_id}") or endpoint.noun == "language"
        quiet = endpoint.role == "worker" or silent
        if endpoint.method != "GET" and not quiet:
            assert endpoint.act, f"{endpoint.name} changes something and leaves no trace"
        if endpoint.body is not None and endpoint.role != "worker":
            assert endpoint.example is not None, f"{endpoint.name} shows no example"


async def test_the_application_has_no_other_routes(served: tuple[Served, dict[str, str]]) -> None:
    found = [(method, path) for method, path, _ in routes(served[0].services)]
    assert found == [*((one.method, one.path) for one in ENDPOINTS), ("websocket", "/api/worker/session")]


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Basic abc", "Bearer nonsense", "Bearer noetl_x_y", "bearer\tx", "Bearer \xff"]
)
async def test_a_bad_token_is_refused_everywhere(served: tuple[Served, dict[str, str]], header: str) -> None:
    answer = await served[0].http.get("/api/executions", headers={b"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
