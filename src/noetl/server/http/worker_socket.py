"""A worker's session: one WebSocket with frames both ways.

What the frames mean is in `WorkerRegistry`, which the HTTP routes share. A waiting claim does not hold up anything else; a worker
that sends faster than it is served is read more slowly. Tested in tests/server/http/test_worker_socket.py.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from functools import partial

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from noetl.model.letters import NO_LETTERS
from noetl.model.plain_data import MOST_DEPTH
from noetl.model.work import PLAYBOOK_LIMITS, WORK_LIMITS
from noetl.ports import AuditEntry
from noetl.server.auth.gate import NOBODY, Actor, reach, refusal
from noetl.server.http.endpoint import address_of, headers_of
from noetl.server.http.limits import decode_json
from noetl.server.problems import Refusal, problem_of
from noetl.server.services import Services
from noetl.server.workers.registry import WorkerConnection
from noetl.wire import session as wire

PATH = "/api/worker/session"
ADMIT = "noetl.admit"  # in the state of a connection: lifts the bound on what it may send before its token is known
_OWN = ("pool_capacity", NO_LETTERS, PLAYBOOK_LIMITS, WORK_LIMITS)  # of this server: workers decide nothing
_HELLO_S = 10.0
_MOST_DEPTH = MOST_DEPTH + 56  # a report around results of tasks, which are limited where they are made
_MOST_AT_ONCE = 256  # frames of one session that are being served
_POLICY, _RESTART = 1008, 1012
_CLOSED = (OSError, RuntimeError)  # what a server raises when a frame is sent to a connection that is over
_decoder: msgspec.json.Decoder[wire.FromWorker] = msgspec.json.Decoder(wire.FromWorker)
_encode = msgspec.json.Encoder().encode
_log = logging.getLogger(__name__)


def session_app(services: Services) -> ASGIApp:
    """Return the ASGI application that serves workers' sessions."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # the connection
        await send({"type": "websocket.accept"})
        await Session(scope, receive, send, services).run()

    return serve


def worker_name(actor: Actor, given: str) -> str:
    """Return the name under which a worker holds leases: it is bound to its token."""
    if not given or len(given) > 200:
        raise Refusal(422, "invalid-input", "a worker has a name of 1 to 200 characters", where="$.worker")
    return given if actor.token_id is None else f"{given}@{actor.token_id}"


def admitted(actor: Actor, hello: wire.Hello) -> str:
    """Check that an actor may be this worker, and return its name. Raises Refusal."""
    if reach(actor, "worker") is not None or actor.csrf:  # a page of another site could open a socket
        raise refusal(actor, "worker")
    if actor.pool is not None and set(hello.pools) != {actor.pool}:
        raise Refusal(
            403,
            "forbidden",
            f"the token of {actor.name} is for the pool `{actor.pool}` only",
            where="$.pools",
            fix="Name that pool, or use another token.",
        )
    return worker_name(actor, hello.worker)


def welcome(services: Services, connection: WorkerConnection, stop: list[str]) -> wire.Welcome:
    lease_ms = services.registry.lease_ms
    beat = min(1_000, lease_ms // 3)
    layer = {name: value for name, value in services.control.defaults.items() if name not in _OWN}
    return wire.Welcome(
        connection.name,
        services.server_id,
        lease_ms,
        beat,
        stop=tuple(stop),
        draining=connection.draining,
        layer=layer,
        now=services.clock.now(),
    )


class Session:
    """One connection of a worker."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, services: Services) -> None:
        self._headers = headers_of(scope)
        self._address = address_of(scope)
        self._admit = scope["state"][ADMIT]
        self._receive_event = receive
        self._send_event = send
        self._services = services
        self._actor = NOBODY
        self._tasks: set[asyncio.Task[None]] = set()
        self._unanswered = 0  # frames that are being served
        self._has_room = asyncio.Event()
        self._is_closed = False
        self._outgoing: list[wire.ToWorker] = []
        self._is_queued = asyncio.Event()

    async def run(self) -> None:
        """Serve until either side ends it."""
        try:
            connection = await self._begin()
        except (WebSocketDisconnect, TimeoutError):
            return
        except Exception as error:  # noqa: BLE001  the caller gets it
            await self._send(wire.Refused(problem_of(error)[0]))
            await self._close(_POLICY)
            return
        stopping = asyncio.create_task(self._services.stopping.wait())
        jobs = [asyncio.create_task(self._read(connection)), asyncio.create_task(self._write())]
        try:
            with self._services.gate.valid(self._actor):
                await asyncio.wait({stopping, *jobs}, return_when=asyncio.FIRST_COMPLETED)
            if not any(job.done() for job in jobs):
                await self._close(_RESTART)
        except Refusal as refusal:  # its token was revoked
            await self._send(wire.Refused(refusal.problem))
            await self._close(_POLICY)
        finally:
            self._is_closed = True
            if not self._services.stopping.is_set():
                self._services.registry.closed(connection, self.push)
            left = (stopping, *jobs, *self._tasks)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _begin(self) -> WorkerConnection:
        services = self._services
        actor = await services.gate.who(self._headers, self._address)
        if actor.role != "open":
            self._admit()
        frame = decode_json(await asyncio.wait_for(self._receive(), _HELLO_S), _decoder, "The frame", _MOST_DEPTH)
        if not isinstance(frame, wire.Hello):
            raise Refusal(400, "no-hello", "the first frame is not hello", fix="Say hello first.")
        if actor.role == "open" and frame.token:
            actor = await services.gate.holder(frame.token, self._address)
        name = admitted(actor, frame)
        self._actor = actor
        self._admit()
        act = AuditEntry(services.clock.now(), actor.name, "worker.hello", name, {"pools": frame.pools})
        connection, stop = await services.registry.hello(name, frame, self.push, act)
        await self._send(welcome(services, connection, stop))
        return connection

    async def _receive(self) -> bytes | str:
        message = await self._receive_event()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        return message.get("bytes") or message.get("text") or b""

    async def _read(self, connection: WorkerConnection) -> None:
        """Serve frames until the connection closes; pause while many are unanswered."""
        while True:
            try:
                self._dispatch(connection, await self._receive())
            except WebSocketDisconnect:
                return
            if len(self._outgoing) >= _MOST_AT_ONCE:
                await self._flush()
            while self._unanswered >= _MOST_AT_ONCE:
                self._has_room.clear()
                await self._has_room.wait()

    async def _write(self) -> None:
        while True:
            await self._is_queued.wait()
            self._is_queued.clear()
            await self._flush()

    async def _flush(self) -> None:
        frames, self._outgoing = self._outgoing, []
        for frame in frames:
            await self._send(frame)

    def _dispatch(self, connection: WorkerConnection, data: bytes | str) -> None:
        try:
            frame = decode_json(data, _decoder, "The frame", _MOST_DEPTH)
        except Refusal as refusal:
            self.push(wire.Refused(refusal.problem))
            return
        if isinstance(frame, wire.Ack):
            self._services.registry.ack(connection, frame.held)
            return
        self._unanswered += 1
        if isinstance(frame, wire.Report):
            self._services.registry.report(connection, frame, partial(self._reply, frame))
        else:
            task = asyncio.create_task(self._serve(connection, frame))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: WorkerConnection, frame: wire.FromWorker) -> None:
        try:
            self._reply(frame, await self._answer(connection, frame))
        except Exception as error:  # noqa: BLE001  the worker gets it; a mistake of ours is logged there
            self._reply(frame, error)

    def _reply(self, frame: wire.FromWorker, answer: wire.ToWorker | Exception | None) -> bool:
        """Answer a frame; return False if the session is over."""
        self._unanswered -= 1
        self._has_room.set()
        if isinstance(answer, Exception):
            answer = wire.Refused(problem_of(answer)[0], getattr(frame, "id", ""))
        if answer is not None and not self._is_closed:
            self.push(answer)
        return not self._is_closed

    async def _answer(self, connection: WorkerConnection, frame: wire.FromWorker) -> wire.ToWorker | None:
        registry = self._services.registry
        if isinstance(frame, wire.Claim):
            return wire.Leases(frame.id, tuple(await registry.claim(connection, frame)))
        if isinstance(frame, wire.Heartbeat):
            lost = tuple(await registry.heartbeat(connection, frame.held))
            return wire.Stop(lost, frame.id, connection.draining, self._services.clock.now())
        if isinstance(frame, wire.Release):
            await registry.release(connection, frame.held)
        elif isinstance(frame, wire.Drain):
            registry.drain(connection.name)
        return None

    def push(self, frame: wire.ToWorker) -> None:
        """Queue a frame for sending."""
        self._outgoing.append(frame)
        self._is_queued.set()

    async def _send(self, frame: wire.ToWorker) -> None:
        with suppress(*_CLOSED):  # it closed meanwhile; its leases are looked after
            await self._send_event({"type": "websocket.send", "bytes": _encode(frame)})

    async def _close(self, code: int) -> None:
        with suppress(*_CLOSED):
            await self._send_event({"type": "websocket.close", "code": code})
