"""Adapters of a remote worker: control plane, blobs and credentials over HTTP.

The worker holds no database credentials; the leases it holds determine what it may read and write. Tested in
tests/cluster/test_examples.py and tests/cluster/.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import httpx
import msgspec

from noetl.client.http import Http
from noetl.client.session import Session
from noetl.model.errors import CredentialUnavailable, Denied, InvalidInput, NoetlError, Unreachable, log_level
from noetl.model.messages import Report as Done
from noetl.model.work import asked_work, kept_slots
from noetl.ports.keychain import OfferedToken
from noetl.ports.outbox import OutboxMessage
from noetl.ports.work import Answer, Deliver, Reply, Stop
from noetl.wire.answers import Removed
from noetl.wire.outbox import OutboxNumber, OutboxPut
from noetl.wire.session import (
    AccessTokenAsked,
    AccessTokenGiven,
    Claim,
    CredentialAsked,
    CredentialGiven,
    Heartbeat,
    Held,
    Leases,
    Report,
    ToWorker,
)
from noetl.wire.session import Stop as Stopped

_BEAT_S: Final = 5.0
_POLL_S: Final = 10.0
_AGAIN_S: Final = 0.5  # after a claim that was refused
_log = logging.getLogger(__name__)
_PLAYBOOKS: Final = 64
_PLAIN = {"Content-Type": "application/octet-stream"}


class RemoteControl:
    """The port `ControlPlane` over a session."""

    def __init__(self, session: Session, http: Http, poll_s: float = _POLL_S) -> None:
        self._session = session
        self._http = http
        self._poll_s = poll_s
        self._playbooks: dict[str, asyncio.Task[bytes]] = {}

    def subscribe(
        self,
        worker: str,
        pools: Sequence[str],  # noqa: ARG002 - sent when the session was opened
        capacity: int,
        deliver: Deliver,
        stop: Stop,
    ) -> RemoteSubscription:
        """Keep a claim outstanding on the session."""
        return RemoteSubscription(self, self._session, worker, self._poll_s, capacity, deliver, stop)

    def report(self, execution_id: str, report: Done, want: int, reply: Reply) -> None:
        """Apply a report; the frame keeps the report's id when it is sent again."""

        def answered(answer: ToWorker | NoetlError) -> bool:
            if isinstance(answer, Leases):
                return reply(Answer(answer.status, list(answer.leases)))
            return reply(answer if isinstance(answer, NoetlError) else NoetlError(f"no answer to a report: {answer}"))

        self._session.request(Report(report.message_id, execution_id, report, want), answered)

    async def heartbeat(self, worker: str, held: Sequence[Held]) -> list[str]:  # noqa: ARG002
        """Renew leases; return the work that must stop. Raises Unreachable."""
        if not self._session.is_open:
            raise Unreachable("there is no session now")
        try:
            async with asyncio.timeout(_BEAT_S):
                answer = await self._session.ask(Heartbeat(tuple(held), uuid4().hex))
        except TimeoutError:
            raise Unreachable("a heartbeat was not answered") from None
        assert isinstance(answer, Stopped)
        return list(answer.work)

    async def playbook(self, playbook: str) -> bytes:
        """Return a canonical tree by its content hash, cached; callers share a fetch."""
        task = self._playbooks.get(playbook)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            while len(self._playbooks) >= _PLAYBOOKS:
                del self._playbooks[next(iter(self._playbooks))]
            task = self._playbooks[playbook] = asyncio.create_task(self._fetch(playbook))
        return await asyncio.shield(task)

    async def _fetch(self, playbook: str) -> bytes:
        return (await self._http.send("GET", f"/api/playbooks/{playbook}")).content


class RemoteSubscription:
    """Subscription of a remote worker: one claim at a time, up to its capacity."""

    def __init__(
        self,
        control: RemoteControl,
        session: Session,
        worker: str,
        poll_s: float,
        capacity: int,
        deliver: Deliver,
        stop: Stop,
    ) -> None:
        self._control = control
        self._session = session
        self._worker = worker
        self._poll_s = poll_s
        self._capacity = capacity
        self._kept = kept_slots(capacity)
        self._deliver = deliver
        self._stop = stop
        self._claim: Claim | None = None  # that is not answered
        self._retry: asyncio.TimerHandle | None = None
        self._checks: set[asyncio.Task[None]] = set()
        self._is_closed = False
        session.stopped = self._check_leases
        self._send_claim()

    def set_capacity(self, capacity: int) -> None:
        """Set how many more work items may be delivered."""
        self._capacity = 0 if self._is_closed else capacity
        if self._capacity <= 0 or (self._claim is not None and self._claim.is_for_idle != self._asks[1]):
            self._withdraw()
        self._send_claim()

    @property
    def _asks(self) -> tuple[int, bool]:
        return asked_work(self._capacity, self._kept)

    def close(self) -> None:
        """Stop claiming; leases that are in flight return to the queue."""
        self._is_closed, self._capacity = True, 0
        self._withdraw()
        for task in self._checks:
            task.cancel()

    def _withdraw(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._claim is not None:
            self._session.withdraw(self._claim)
            self._claim = None

    def _send_claim(self) -> None:
        self._retry = None
        if self._claim is None and self._capacity > 0:
            most, is_for_idle = self._asks
            self._claim = Claim(uuid4().hex, most, self._poll_s, is_for_idle=is_for_idle)
            self._session.request(self._claim, self._answered)

    def _answered(self, answer: ToWorker | NoetlError) -> bool:
        self._claim = None
        if isinstance(answer, Leases):
            self._capacity -= len(answer.leases)
            self._deliver(list(answer.leases))
            self._send_claim()
            return True
        _log.log(log_level(answer), "no work can be claimed now: %s", answer)
        self._retry = asyncio.get_running_loop().call_later(_AGAIN_S, self._send_claim)
        return False

    def _check_leases(self, _: Iterable[str]) -> None:
        """Ask which leases are lost; work may have come back under a new lease."""
        if not self._is_closed:
            task = asyncio.create_task(self._stop_lost())
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)

    async def _stop_lost(self) -> None:
        asked = self._session.held
        try:
            lost = set(await self._control.heartbeat(self._worker, asked)) if asked else set()
        except NoetlError as error:
            _log.log(log_level(error), "the worker's next heartbeat stops what was cancelled: %s", error)
            return
        still = set(self._session.held)
        self._stop([held[0] for held in asked if held[0] in lost and held in still])


class RemoteBlobs:
    """The port `Blobs` over HTTP, authorized by the lease of the running work."""

    def __init__(self, http: Http, worker: str, lease: Callable[[], Held]) -> None:
        self._http = http
        self._worker = worker
        self._lease = lease

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        query = {**self._asks(ref), "meta": msgspec.json.encode(meta).decode()}
        answer = await self._http.send("PUT", "/api/blobs", data, query, _PLAIN)
        msgspec.json.decode(answer.content, type=Removed)

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        return (await self._read(ref, start, length)).content

    async def about(self, ref: str) -> Mapping[str, Any]:
        answer = await self._read(ref, 0, 0)
        found: Mapping[str, Any] = msgspec.json.decode(answer.headers["X-NoETL-Meta"].encode("latin-1"), type=dict)
        return found

    async def delete(self, refs: Sequence[str]) -> None:  # noqa: ARG002
        raise NoetlError("a worker deletes no stored results; the server does.")

    async def _read(self, ref: str, start: int, length: int | None) -> httpx.Response:
        query = {**self._asks(ref), "start": start} | ({} if length is None else {"length": length})
        return await self._http.send("GET", "/api/blobs", None, query)

    def _asks(self, ref: str) -> dict[str, Any]:
        work, epoch = self._lease()
        return {"ref": ref, "worker": self._worker, "work": work, "epoch": epoch}


class RemoteOutbox:
    """The port `OutboxIn` over HTTP, authorized by the lease of the running work."""

    def __init__(self, http: Http, worker: str, lease: Callable[[], Held]) -> None:
        self._http = http
        self._worker = worker
        self._lease = lease

    async def put(self, message: OutboxMessage, now: int) -> int:  # noqa: ARG002 - the server has the time
        """Put a message; if it is sent again after a lost answer, it is stored once."""
        names = ("key", "topic", "target", "address", "payload", "headers", "auth", "available_at")
        asked = OutboxPut(self._lease(), worker=self._worker, **{name: getattr(message, name) for name in names})
        return (await self._http.ask("POST", "/api/worker/outbox", OutboxNumber, asked)).number


class RemoteTokens:
    """Access tokens that workers share, by the lease of running work."""

    def __init__(self, http: Http, worker: str, lease: Callable[[], Held]) -> None:
        self._http = http
        self._worker = worker
        self._lease = lease

    async def ask(self, key: str, seen: int) -> OfferedToken:
        """Return a token of a version after `seen`, or the right to fetch it."""
        found = await self._send(AccessTokenAsked(key, self._lease(), self._worker, seen))
        return OfferedToken(found.token, found.expires_at, found.version, found.may_fetch, found.refresh_token)

    async def keep(self, key: str, token: Mapping[str, Any] | None, expires_at: int) -> int:
        """Share a fetched token, or give the right back (None); return its version."""
        given = None if token is None else dict(token)
        asked = AccessTokenAsked(key, self._lease(), self._worker, 0, True, given, expires_at)
        return (await self._send(asked)).version

    async def _send(self, asked: AccessTokenAsked) -> AccessTokenGiven:
        return await self._http.ask("POST", "/api/worker/access-token", AccessTokenGiven, asked)


class RemoteCredentials:
    """Credentials from the server by the lease of running work, kept for one call."""

    def __init__(self, http: Http, worker: str, lease: Callable[[], Held]) -> None:
        self._http = http
        self._worker = worker
        self._lease = lease

    async def __call__(self, name: str) -> Mapping[str, Any]:
        """Return a credential.

        Raises KeyError if there is none, CredentialUnavailable if it cannot be fetched now.
        """
        asked = CredentialAsked(name, self._lease(), self._worker)
        try:
            return (await self._http.ask("POST", "/api/worker/credential", CredentialGiven, asked)).data
        except InvalidInput:
            raise KeyError(name) from None
        except Denied as error:
            raise CredentialUnavailable(f"the credential `{name}` is not given: {error}") from None
        except NoetlError as error:
            raise CredentialUnavailable(f"the credential `{name}` cannot be had now: {error}", retryable=True) from None
