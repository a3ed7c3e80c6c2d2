"""Nonsensical bodies to every route, and frames to a session.

No server error, no trace in the log, and the server goes on. `make chaos` sends many more, new ones on each run.
"""

from __future__ import annotations

import asyncio
import atexit
import random
import shutil
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from noetl.ports.outbox import OutboxMessage
from noetl.server.api import endpoints
from noetl.server.app import app
from noetl.server.http.endpoint import Endpoint
from noetl.server.http.worker_socket import ADMIT
from noetl.settings import ServerSettings
from noetl.wire.session import Heartbeat, Stop
from tests.databases import bring_back, fresh_database, keep
from tests.server.fuzzing import Fuzz, asked, in_address, no_traces
from tests.server.serving import ONE, TWO, WAITS, Served, in_process, listening, session

MANY, SOME, FEW = 2_000, 120, 60
SLOW = 40  # requests, where a password is hashed or every refusal waits
PASSWORD = "correct horse battery"
SIGNED = {"x-webhook-secret": "a secret of some length"}  # for deliveries of webhooks
HELLO = {"worker": "host:17", "acks": False, "capacity": 4}
AT_ONCE = 20
INGEST = [one for one in endpoints() if one.body is not None or one.takes != "application/json"]
pytestmark = pytest.mark.asyncio


KEYED = ServerSettings(key=urlsafe_b64encode(bytes(32)).decode())
_seeds: dict[str, tuple[str, dict[str, Any]]] = {}  # a folder or a database, and what is called how in it


@asynccontextmanager
async def busy(folder: Path, store: str = "sqlite") -> AsyncIterator[tuple[Served, dict[str, Any]]]:
    """A server with executions, leases and a worker; and what these are called.

    A process of tests fills a store once: each server begins with a copy of it.
    """
    if store not in _seeds:
        _seeds[store] = await (seeded_database() if store == "postgres" else seeded_folder())
    place, names = _seeds[store][0], dict(_seeds[store][1])
    if store == "postgres":
        bring_back(place)
    else:
        shutil.copytree(place, folder, dirs_exist_ok=True)
    async with in_process(folder, KEYED, **({"database": place} if store == "postgres" else {})) as served:
        await served.json("POST", "/api/worker/hello", HELLO)
        claimed = await served.json("POST", "/api/worker/claim", {"id": "c-0", "worker": "host:17", "most": 4})
        names["lease"] = next(one for one in claimed["leases"] if one["work"]["step"] == "one")
        yield served, names


async def seeded_folder() -> tuple[str, dict[str, Any]]:
    folder = tempfile.mkdtemp(prefix="noetl-busy-")
    atexit.register(shutil.rmtree, folder)
    return folder, await seeded(Path(folder))


async def seeded_database() -> tuple[str, dict[str, Any]]:
    address = fresh_database("fuzz")
    with tempfile.TemporaryDirectory() as folder:
        names = await seeded(Path(folder), database=address)
    keep(address)
    return address, names


async def seeded(folder: Path, **more: Any) -> dict[str, Any]:
    """Fill a store; return what is called how in it."""
    async with in_process(folder, KEYED, **more) as served:
        names: dict[str, Any] = {"waits": await served.start(WAITS), "one": await served.register(ONE)}
        await served.json("PUT", "/api/credentials/pg_main", {"data": {"dsn": "x"}})
        names["message"] = await served.services.outbox.put(OutboxMessage("k", available_at=2**50), 1)
        await served.json("POST", "/api/schedules", {"name": "s", "path": names["one"], "every": "1d"})
        await served.json("PUT", "/api/credentials/hook", {"data": {"value": SIGNED["x-webhook-secret"]}})
        hook = {"name": "w", "path": names["one"], "auth": "secret", "credential": "hook"}
        await served.json("POST", "/api/webhooks", hook)
        user = {"name": "pg_main", "password": PASSWORD, "grants": [{"role": "viewer"}]}
        await served.json("POST", "/api/users", user, status=201)
        told = {"name": "n", "path": "none/*", "on": ["failed"], "channel": "webhook", "url": "https://a.example/"}
        await served.json("POST", "/api/notifications", told, status=201)
        fed = {"name": "m", "path": names["one"], "source": "folder", "folder": "/none"}
        await served.json("POST", "/api/subscriptions", fed, status=201)
        await served.json("POST", "/api/worker/hello", HELLO)
        names["letter"] = await letter(served)
        await served.start(TWO.replace("workflow:", "keychain: [{name: pg_main}]\nworkflow:"))
        return names


async def letter(served: Served) -> str:
    """Fail a step, so that a dead letter waits; return its id."""
    started = await served.start(TWO)
    claimed = await served.json("POST", "/api/worker/claim", {"id": "c-1", "worker": "host:17", "most": 4})
    lease = next(one for one in claimed["leases"] if one["work"]["execution_id"] == started)
    ending = {"status": "error", "error": {"kind": "client_error", "message": "no"}}
    report = {"type": "Report", "message_id": "f", "run_id": "one#1", "epoch": lease["epoch"], "ending": ending}
    asked = {"id": "f", "worker": "host:17", "execution_id": started, "report": report}
    await served.json("POST", "/api/worker/report", asked)
    (found,) = (await served.json("GET", "/api/dlq"))["letters"]
    return str(found["message_id"])


def good(endpoint: Endpoint, names: dict[str, Any]) -> list[Any]:
    """Bodies that a route takes: its example, with the names of what is there."""
    work, epoch = names["lease"]["work"], names["lease"]["epoch"]
    held = [work["work_id"], epoch]
    done = {
        "type": "Report",
        "message_id": "m",
        "run_id": work["run_id"],
        "epoch": epoch,
        "ending": {"status": "ok", "result": 1},
    }
    done |= {"records": [{"event_type": "task.started", "at": 1, "task": "t", "payload": {}}], "writes": {"ctx.a": 1}}
    report = {"id": "r", "worker": "host:17", "execution_id": work["execution_id"], "report": done, "want": 1}
    event = {"event_type": "action_completed", "node_id": work["work_id"], "worker_id": "host:17", "result": {"n": 1}}
    known: dict[str, list[Any]] = {
        "/api/execute": [{"path": names["one"], "payload": {"n": 1}, "tags": ["t"], "priority": 1}, {"content": ONE}],
        "/api/execute/many": [{"path": names["one"], "payloads": [{"n": 1}, {}], "tags": ["t"], "wait_ms": 0}],
        "/api/executions/execute": [{"playbook_id": names["one"], "parameters": {"n": 1}, "version": "latest"}],
        "/api/schedules": [
            {"name": "n", "path": names["one"], "cron": "30 2 * * *", "timezone": "Europe/Vienna", "jitter": "1m"},
            {"name": "c", "path": names["one"], "calendar": {"dates": ["12-24"], "at": ["08:00"]}, "payload": {"n": 1}},
        ],
        "/api/webhooks": [
            {"name": "v", "path": names["one"], "auth": "hmac", "credential": "hook", "payload": {"n": "{{ body.n }}"}}
        ],
        "/api/triggers": [
            {"name": "e", "path": names["one"], "after": "etl/*", "status": ["failed"], "payload": {"n": 1}}
        ],
        "/api/subscriptions": [
            {"name": "l", "path": names["one"], "source": "http", "url": "https://a.example/", "id": "{{ item.id }}"}
            | {
                "items": "{{ body.x }}",
                "params": {"a": "{{ cursor }}"},
                "payload": {"n": "{{ message.data }}"},
                "paused": True,
            }
        ],
        "/api/notifications": [
            {"name": "m", "path": "test/*", "on": ["failed", "sla"], "channel": "webhook", "url": "https://a.example/"}
            | {"sla": "1h"}
        ],
        "/api/catalog": [{"content": ONE}, {"content": WAITS, "check_only": True}, {"content": ONE, "expected": 1}],
        "/api/executions/{execution_id}/fork": [{"start": "ask", "ctx": {"n": 1}, "workload": {"m": 2}}],
        "/api/executions/cancel": [{"ids": [names["waits"]], "dry_run": True}, {"query": {"path": "none/*"}}],
        "/api/executions/retry": [{"ids": [names["waits"]], "latest": True}, {"query": {"status": ["failed"]}}],
        "/api/executions/{execution_id}/retry": [{"step": "ask", "ctx": {"n": 1}, "latest": True}],
        "/api/worker/report": [report],
        "/events": [report, event, {**event, "event_type": "action_error", "error": {"message": "x"}}],
        "/api/worker/heartbeat": [{"worker": "host:17", "held": [held]}],
        "/api/worker/ack": [{"worker": "host:17", "held": [held]}],
        "/api/worker/release": [{"worker": "host:17", "held": [["1:x#1", 3]]}],
        "/api/worker/credential": [{"name": "pg_main", "worker": "host:17", "work": held}],
        "/api/worker/access-token": [{"key": "0" * 64, "worker": "host:17", "work": held}],
        "/api/session": [{"user": "pg_main", "password": PASSWORD}],
        "/api/users/{name}": [{"disabled": False}],
        "/api/worker/outbox": [
            {"work": held, "worker": "host:17", "key": f"{work['execution_id']}:one:t", "topic": "t", "address": "a"}
            | {"payload": {"a": [1]}, "headers": {"X": "y"}, "auth": "pg_main", "target": "http", "available_at": 2**50}
        ],
        "/api/try": [{"content": ONE, "payload": {"n": 1}, "until": "one"}, {"content": ONE, "from": names["waits"]}],
        "/api/language/complete": [{"content": ONE, "offset": ONE.index("noop") + 2}],
        "/api/language/rename": [{"content": ONE, "offset": ONE.index("one", 90), "name": "two"}],
        "/context/render": [
            {"execution_id": names["waits"], "template": {"a": "{{ workload.n }}"}, "strict": True, "args": {}}
        ],
    }
    return known.get(endpoint.path, [endpoint.example if endpoint.example is not None else {}])


def target(endpoint: Endpoint, names: dict[str, Any], fuzz: Fuzz) -> str:
    """An address of a route: mostly one that is there."""
    work, epoch = names["lease"]["work"], names["lease"]["epoch"]
    known = {
        "execution_id": names["waits"],
        "step": "ask",
        "work_id": work["work_id"],
        "name": "pg_main",
        "worker_id": "host:17",
        "number": str(names["message"]),
        "message_id": names["letter"],
        "schedule_id": "s",
        "webhook_id": "w",
        "notification_id": "n",
        "subscription_id": "m",
    }
    path = endpoint.path
    for name in endpoint.places:
        value = fuzz.text() if fuzz.chance.random() < 0.1 else known.get(name, "x")
        path = path.replace(f"{{{name}}}", in_address(value or "x"))
    if endpoint.path == "/api/blobs":
        ref = f"noetl://execution/{work['execution_id']}/step/one/task/t/run/1/attempt/{fuzz.chance.randrange(5)}"
        given: dict[str, Any] = {
            "ref": ref,
            "work": work["work_id"],
            "epoch": epoch,
            "worker": "host:17",
            "meta": '{"a":1}',
        }
        if fuzz.chance.random() < 0.7:
            given[fuzz.chance.choice(list(given))] = fuzz.text().encode("utf-8", "surrogatepass")
        path += "?" + urlencode(given)
    return path


async def hold(folder: Path, endpoint: Endpoint, store: str, many: int, seed: str = "") -> None:
    """Hold a route to it that no body breaks it."""
    async with busy(folder, store) as (served, names):
        server, fuzz = app(served.services), Fuzz(endpoint.name + seed, good(endpoint, names))
        reached = 0
        many = min(many, SLOW) if endpoint.path in ("/api/session", "/api/users") else many

        async def one() -> None:
            nonlocal reached
            where, body = target(endpoint, names, fuzz), fuzz.body()
            media = "application/json" if endpoint.takes == "*/*" else endpoint.takes
            status, headers, text = await asked(server, endpoint.method, where, body, media, SIGNED)
            assert status < 500, (seed, where, body[:2_000], text)
            assert status < 400 or headers["content-type"] == "application/problem+json", (seed, where, body[:2_000])
            reached += status < 400

        with no_traces():
            for _ in range(many // AT_ONCE):
                asking = asyncio.gather(*(one() for _ in range(AT_ONCE)))
                while not asking.done():
                    await asyncio.wait([asking], timeout=0.02)
                    served.services.registry.answer_claims()  # so that no claim waits for work
                await asking
            assert reached, "no body got through, so nothing behind the decoding was tried"
            assert (await served.json("GET", "/ready"))["status"] == "ready"
            assert (await served.http.get(f"/api/executions/{names['waits']}")).status_code == 200


@pytest.mark.parametrize("endpoint", INGEST, ids=lambda endpoint: endpoint.name)
async def test_no_body_breaks_a_route(tmp_path: Path, endpoint: Endpoint) -> None:
    await hold(tmp_path, endpoint, "sqlite", SOME)


@pytest.mark.parametrize("endpoint", INGEST, ids=lambda endpoint: endpoint.name)
async def test_no_body_breaks_a_route_on_postgresql(tmp_path: Path, endpoint: Endpoint) -> None:
    await hold(tmp_path, endpoint, "postgres", FEW)


@pytest.mark.chaos
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("endpoint", INGEST, ids=lambda endpoint: endpoint.name)
async def test_no_body_of_very_many_breaks_a_route(tmp_path: Path, endpoint: Endpoint, store: str) -> None:
    await hold(tmp_path, endpoint, store, MANY, seed=str(time.time_ns()))


async def test_no_frame_breaks_a_session(tmp_path: Path) -> None:
    async with busy(tmp_path) as (served, names):
        sent: asyncio.Queue[Any] = asyncio.Queue(AT_ONCE)
        received: asyncio.Queue[Any] = asyncio.Queue()
        scope = {
            "type": "websocket", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "ws", "root_path": "",
            "path": "/api/worker/session", "raw_path": b"/api/worker/session", "query_string": b"", "subprotocols": [],
            "headers": [(b"host", b"127.0.0.1")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8082),
            "state": {ADMIT: lambda: None},
        }  # fmt: skip
        frames = [
            {"type": kind, **body}
            for path, kind in (
                ("claim", "claim"), ("report", "report"), ("heartbeat", "heartbeat"), ("ack", "ack"), ("release", "release"),
            )
            for body in good(next(one for one in INGEST if one.path == f"/api/worker/{path}"), names)
        ]  # fmt: skip
        frames.append({"type": "hello", "worker": "host:17"})
        for frame in frames:
            frame.pop("wait_s", None)
        fuzz = Fuzz("session", frames)
        with no_traces():
            session = asyncio.create_task(app(served.services)(scope, sent.get, received.put))
            await sent.put({"type": "websocket.connect"})
            await sent.put({"type": "websocket.receive", "text": '{"type":"hello","worker":"host:17"}'})
            for _ in range(MANY):
                body = fuzz.body()
                if fuzz.chance.random() < 0.1:
                    await sent.put({"type": "websocket.receive", "text": body.decode("utf-8", "replace")})
                else:
                    await sent.put({"type": "websocket.receive", "bytes": body})
                served.services.registry.answer_claims()
            await sent.put({"type": "websocket.receive", "text": '{"type":"heartbeat","id":"the-last"}'})
            while True:
                message = await asyncio.wait_for(received.get(), 30)
                assert b'"status":500' not in message.get("bytes", b""), message
                if b"the-last" in message.get("bytes", b""):
                    break
            await sent.put({"type": "websocket.disconnect", "code": 1000})
            await asyncio.wait_for(session, 30)
        assert (await served.json("GET", "/ready"))["status"] == "ready"


def frame_bytes(chance: random.Random) -> bytes:
    """Return a WebSocket frame, mostly valid: any kind, length, mask or part."""
    kind = chance.choice((0x80, 0x80, 0x00, 0xC0, 0x90)) | chance.choice((0, 1, 2, 2, 2, 8, 9, 10, 3, 15))
    body = chance.choice(
        (
            b"",
            b"{}",
            b'{"type":"heartbeat","id":"x"}',
            b'{"type":"claim","id":"c"}',
            chance.randbytes(200),
            b"x" * 70_000,
        )
    )
    said = len(body) if chance.random() < 0.9 else chance.choice((0, 1, 126, 127, 65_536, 2**31, 2**63 - 1, 2**64 - 1))
    size = bytes([said]) if said < 126 else b"\x7e" + said.to_bytes(2) if said < 65_536 else b"\x7f" + said.to_bytes(8)
    masked = chance.random() < 0.9
    head = bytes([kind, size[0] | (0x80 if masked else 0)]) + size[1:]
    return head + (b"\0\0\0\0" if masked else b"") + body


async def test_no_bytes_break_a_socket(tmp_path: Path) -> None:
    chance = random.Random("socket")
    async with listening(tmp_path) as served:
        host, port = served.url.removeprefix("http://").split(":")
        opening = (
            b"GET /api/worker/session HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        )
        hello = b'{"type":"hello","worker":"w"}'
        with no_traces():
            for _ in range(FEW):
                reader, writer = await asyncio.open_connection(host, int(port))
                writer.write(opening)
                await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
                frames = [b"\x82" + bytes([0x80 | len(hello)]) + b"\0\0\0\0" + hello]
                frames += [frame_bytes(chance) for _ in range(chance.randrange(20))]
                data = b"".join(frames) + (chance.randbytes(chance.randrange(50)) if chance.random() < 0.3 else b"")
                try:
                    while data:  # in pieces that have nothing to do with the frames
                        piece = data[: chance.choice((1, 7, 100, 5_000, 100_000))]
                        data = data[len(piece) :]
                        writer.write(piece)
                        await writer.drain()
                    writer.write_eof()
                    while await asyncio.wait_for(reader.read(65_536), 30):
                        pass
                except ConnectionError:
                    pass  # the server has had enough
                writer.close()
            assert (await served.json("GET", "/ready"))["status"] == "ready"
            async with session(served, "w2") as worker:
                assert replace(await worker.ask(Heartbeat((), "h")), now=0) == Stop((), "h")
