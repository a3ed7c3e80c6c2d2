"""No other spelling of a path opens a route; a worker touches only its leases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from noetl.server.api import endpoints
from noetl.server.app import RouteTable, app
from noetl.server.auth.gate import ROLES, may
from noetl.server.auth.gate import Actor as Somebody
from noetl.server.http.endpoint import Endpoint
from noetl.server.http.guard import HEADERS as HEADERS_OF_ANSWERS
from noetl.settings import ServerSettings
from tests.server.fuzzing import asked
from tests.server.serving import ONE, TWO, Served, address_of, bearer, in_process, listening, secret

pytestmark = pytest.mark.asyncio(loop_scope="module")
TOKEN = ServerSettings(auth="token")
PROTECTED = [one for one in endpoints() if one.role != "open"]
REFUSED = (400, 401, 403, 404, 405, 415, 422)
HEADERS = (
    {"X-Original-URL": "/health"},
    {"X-Rewrite-URL": "/health"},
    {"X-Forwarded-Prefix": "/health"},
    {"X-HTTP-Method-Override": "GET"},
    {"X-Forwarded-For": "127.0.0.1"},
    {"X-Forwarded-User": "admin"},
    {"Cookie": "token=admin"},
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Served, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("paths")
    secrets = {role: await secret(folder, role) for role in ROLES}
    async with listening(folder, TOKEN) as found:
        yield found, secrets


def spellings(path: str) -> Iterator[str]:
    """Return spellings of a path that may get past a guard that compares texts."""
    first, last = path[1:].partition("/")[0], path.rpartition("/")[2]
    yield path
    yield f"/%{ord(path[1]):02x}{path[2:]}"  # the same path for a server
    yield from (f"{path}{end}" for end in ("/", "//", "/.", "/..;/", "%2f", "%2F", "%5c", "%00", "%20", "%09", "%0a"))
    yield from (f"{path}{end}" for end in (".json", ".html", ";x=1", "?x", "%3f", "%23", "~", "/x", "/../" + last))
    yield from (
        f"{start}{path}" for start in ("/", "/.", "/health/..", "/health;/..", "/x/..", "/%2e", "/%2e%2e", "\\")
    )
    yield f"/health%2f..{path}"
    yield f"/docs%2f..%2f{path[1:]}"
    yield path.replace("/", "//")
    yield path.replace("/", "%2f")[0:1] + path[1:].replace("/", "%2f")
    yield path.replace("/", "%252f")
    yield path.replace("/", "/./")
    yield path.replace("/", "\\")
    yield path.upper()
    yield path.replace(first, first.title(), 1)
    yield path[: -len(last)] + last.swapcase()


def lesser(endpoint: Endpoint) -> str | None:
    """The most powerful role that a route is not for."""
    order = ("worker", "admin", "editor", "operator", "viewer")
    return next((role for role in order if not may(Somebody("x", role), endpoint.role)), None)


async def status(url: str, method: str, target: str, headers: dict[str, str]) -> int:
    """Send a request whose first line is exactly this."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", "Content-Length: 2"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write(("\r\n".join(lines) + "\r\n\r\n{}").encode("latin-1"))
    line = await asyncio.wait_for(reader.readline(), 30)
    writer.close()
    return int(line.split()[1])


async def test_a_fixed_segment_wins_over_a_parameter_and_the_method_decides_first() -> None:
    called: list[tuple[str, dict[str, str]]] = []

    def named(name: str) -> Any:
        async def serve(scope: Any, _receive: Any, _send: Any) -> None:
            called.append((name, scope["path_params"]))

        return serve

    table = RouteTable(
        (method, path, named(f"{method} {path}"))
        for method, path in (
            ("GET", "/x/{id}"),
            ("GET", "/x/all"),
            ("DELETE", "/x/{id}"),
            ("GET", "/x/{id}/y/{key}"),
            ("GET", "/"),
        )
    )
    for method, path, found in (
        ("GET", "/x/all", ("GET /x/all", {})),
        ("HEAD", "/x/all", ("GET /x/all", {})),
        ("DELETE", "/x/all", ("DELETE /x/{id}", {"id": "all"})),
        ("GET", "/x/all/y/1", ("GET /x/{id}/y/{key}", {"id": "all", "key": "1"})),
        ("GET", "/x/{}", ("GET /x/{id}", {"id": "{}"})),
        ("GET", "/", ("GET /", {})),
    ):
        await table({"type": "http", "method": method, "path": path}, None, None)  # type: ignore[arg-type]
        assert called.pop() == found
    for method, path, status, allow in (
        ("POST", "/x/1", 405, "DELETE, GET, HEAD"),
        ("GET", "/x/", 404, None),
        ("GET", "/x//y/1", 404, None),
        ("GET", "/x/1/", 404, None),
        ("GET", "/x/all\n/y", 404, None),
        ("GET", "", 404, None),
    ):
        got, headers, _ = await asked(table, method, path, b"")
        assert (got, headers.get("allow")) == (status, allow), (method, path)


@pytest.mark.parametrize("endpoint", PROTECTED, ids=lambda endpoint: endpoint.name)
async def test_no_spelling_of_a_path_opens_it(served: tuple[Served, dict[str, str]], endpoint: Endpoint) -> None:
    server, secrets = served
    role = lesser(endpoint)
    whose: list[dict[str, str]] = [{}, *([bearer(secrets[role])] if role is not None else [])]
    asking = app(server.services)
    for headers in whose:
        for target in spellings(address_of(endpoint)):
            for method in dict.fromkeys((endpoint.method, "HEAD" if endpoint.method == "GET" else endpoint.method)):
                got, _, _ = await asked(asking, method, target, b"{}", headers=headers)
                assert got in REFUSED, (method, target, headers, got)
        assert await status(server.url, endpoint.method, address_of(endpoint), headers) in (401, 403)


@pytest.mark.parametrize("path", list(spellings("/api/tokens")))
async def test_a_real_server_reads_paths_the_same_way(served: tuple[Served, dict[str, str]], path: str) -> None:
    server, secrets = served
    for headers in ({}, bearer(secrets["worker"])):
        got = await status(server.url, "GET", path, headers)
        assert got == (await asked(app(server.services), "GET", path, b"{}", headers=headers))[0] or got == 400
        assert got in REFUSED


async def test_no_header_opens_a_path(served: tuple[Served, dict[str, str]]) -> None:
    server, secrets = served
    asking = app(server.services)
    for endpoint in PROTECTED:
        for extra in HEADERS:
            got, _, _ = await asked(asking, endpoint.method, address_of(endpoint), b"{}", headers=extra)
            assert got == 401, (endpoint.name, extra, got)
    for target in ("http://127.0.0.1/api/tokens", "http://127.0.0.1/health/../api/tokens", "*", "api/tokens"):
        got = await status(server.url, "GET", target, bearer(secrets["viewer"]))
        assert got in REFUSED, (target, got)


@pytest.mark.parametrize("path", list(spellings("/api/worker/session")))
async def test_no_spelling_of_the_session_lets_anybody_in(served: tuple[Served, dict[str, str]], path: str) -> None:
    server, secrets = served
    for headers in ({}, bearer(secrets["admin"][:-1])):
        url = server.url.replace("http", "ws") + path
        try:
            async with connect(url, additional_headers=headers) as socket:
                await socket.send('{"type":"hello","worker":"w"}')
                assert '"refused"' in str(await asyncio.wait_for(socket.recv(), 30))
        except (InvalidStatus, ValueError, ConnectionClosed):
            pass  # no such route, no such address, or no such token


async def test_every_route_asks_for_its_host_and_origin_and_answers_with_the_headers_that_protect(
    served: tuple[Served, dict[str, str]],
) -> None:
    server, secrets = served
    asking, admin = app(server.services), bearer(secrets["admin"])
    for endpoint in endpoints():
        for extra, refused in (
            ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Host": "evil.example"}, 421),
            ({"Host": "127.0.0.1.evil.example:8082"}, 421),
        ):
            got, told, _ = await asked(asking, endpoint.method, address_of(endpoint), b"{}", headers={**admin, **extra})
            assert got == refused, (endpoint.name, extra, got)
            assert "access-control-allow-origin" not in told
        _, told, _ = await asked(asking, endpoint.method, address_of(endpoint), b"{")
        if endpoint.path == "/":
            continue  # the web UI has a policy of its own: tests/server/http/test_screen.py
        for name, value in HEADERS_OF_ANSWERS.items():
            assert told[name.lower()] == value, (endpoint.name, name)


async def test_what_is_open_to_everybody_tells_nothing(served: tuple[Served, dict[str, str]]) -> None:
    server, _ = served
    shown = {"/", "/health", "/ready", "/docs", "/api/openapi.json"}
    opened = {one.path for one in endpoints() if one.role == "open"}
    signing_in = {"/api/session", "/api/session/oidc", "/api/session/oidc/callback"}
    assert opened == {*shown, *signing_in, "/api/hooks/{webhook_id}"}
    await secret(server.embedded.settings.store.parent, "viewer")
    for path in shown:
        status, _, text = await asked(app(server.services), "GET", path, b"")
        assert status == 200
        assert b"noetl_" not in text


async def test_a_worker_touches_only_what_it_holds(tmp_path: Path) -> None:
    admin, one, two = [
        await secret(tmp_path, role, name) for role, name in (("admin", "a"), ("worker", "b"), ("worker", "c"))
    ]
    async with in_process(tmp_path, TOKEN) as server:

        async def ask(whose: str, method: str, path: str, body: Any = None, **more: Any) -> Any:
            return await server.http.request(method, path, json=body, headers=bearer(whose), **more)

        server.http.headers["Authorization"] = f"Bearer {admin}"
        await server.json("PUT", "/api/credentials/pg", {"data": {"dsn": "x"}})
        started, other = (
            await server.start(TWO.replace("workflow:", "keychain: [{name: pg}]\nworkflow:")),
            await server.start(ONE),
        )
        for worker in (one, two):  # both call themselves the same
            await ask(worker, "POST", "/api/worker/hello", {"worker": "w", "acks": False})
        lease = (await ask(one, "POST", "/api/worker/claim", {"id": "c", "worker": "w"})).json()["leases"][0]
        work, epoch = lease["work"]["work_id"], lease["epoch"]
        held = [work, epoch]
        done = {"type": "Report", "message_id": "m", "run_id": "one#1", "epoch": epoch, "ending": {"status": "ok"}}
        report = {"id": "r", "worker": "w", "execution_id": started, "report": done}

        # Another worker's report is late, whatever it contains; the execution does not change.
        assert (await ask(two, "POST", "/api/worker/report", report)).json()["status"] == "late"
        other_id = {**report, "report": {**done, "message_id": "n"}}
        assert (await ask(two, "POST", "/events", other_id)).json()["status"] == "late"
        # Neither a heartbeat, a release nor a new hello reaches the lease of another.
        assert (await ask(two, "POST", "/api/worker/heartbeat", {"worker": "w", "held": [held]})).json()["work"] == [
            work
        ]
        await ask(two, "POST", "/api/worker/release", {"worker": "w", "held": [held]})
        again = await ask(two, "POST", "/api/worker/hello", {"worker": "w", "acks": False, "held": [held]})
        assert again.json()["stop"] == [work]
        claims = await ask(two, "POST", "/api/worker/claim", {"id": "c", "worker": "w", "most": 9})
        assert [found["work"]["execution_id"] for found in claims.json()["leases"]] == [other]
        # Nor is a credential opened or a result put or read on the strength of it.
        asking = {"name": "pg", "worker": "w", "work": held}
        assert (await ask(two, "POST", "/api/worker/credential", asking)).status_code == 403
        assert (await ask(one, "POST", "/api/worker/credential", asking)).status_code == 200
        query = {"work": work, "epoch": epoch, "worker": "w", "ref": f"noetl://execution/{started}/step/one/x"}
        for method in ("PUT", "GET"):
            assert (await ask(two, method, "/api/blobs", params=query)).status_code == 403
        assert (await ask(one, "PUT", "/api/blobs", params=query)).status_code == 200
        foreign = {**query, "ref": f"noetl://execution/{other}/step/one/x"}
        for method in ("PUT", "GET"):
            assert (await ask(one, method, "/api/blobs", params=foreign)).status_code == 403
        # What is not a worker's is closed: lists, results, catalogs, other workers. A playbook is known by its hash only.
        for path in (
            "/api/executions",
            "/api/results/resolve?ref=noetl://x",
            "/api/catalog",
            "/api/credentials",
            "/api/workers",
        ):
            assert (await ask(one, "GET", path)).status_code == 403
        assert (await ask(one, "GET", f"/api/playbooks/{'0' * 64}")).status_code == 404
        assert (await ask(one, "GET", f"/api/playbooks/{lease['work']['playbook']}")).status_code == 200
        # And the one who holds it reports.
        assert "status" not in (await ask(one, "POST", "/api/worker/report", report)).json()
        assert (await server.json("GET", f"/api/executions/{started}"))["steps"]["one"]["done"] == 1
