"""What a worker on another machine works with: the `ControlPlane`, `Blobs` and credentials over HTTP.

The worker holds no database credentials; what it may read and write follows from the leases it holds. Tested in
tests/cluster/test_examples.py and tests/cluster/.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import httpx
import msgspec

from noetl.client.http import Http
from noetl.client.session import Session
from noetl.model.errors import CredentialUnavailable, Denied, InvalidInput, NoetlError, Unreachable
from noetl.model.messages import Report as Done
from noetl.model.work import Lease
from noetl.ports.outbox import OutboxMessage
from noetl.wire.answers import Removed
from noetl.wire.outbox import OutboxNumber, OutboxPut
from noetl.wire.session import Claim, CredentialAsked, CredentialGiven, Heartbeat, Held, Leases, Report, Stop

_BEAT_S: Final = 5.0
_PLAYBOOKS: Final = 64
_PLAIN = {"Content-Type": "application/octet-stream"}


class RemoteControl:
    """The port `ControlPlane` over a session."""

    def __init__(self, session: Session, http: Http) -> None:
        self._session = session
        self._http = http
        self._playbooks: dict[str, asyncio.Task[bytes]] = {}

    async def claim(self, worker: str, pools: Sequence[str], most: int, wait_s: float) -> list[Lease]:  # noqa: ARG002
        """Give work; who asks for which pools was said when the session was opened."""
        answer = await self._session.ask(Claim(uuid4().hex, most, wait_s))
        assert isinstance(answer, Leases)
        return list(answer.leases)

    async def report(self, execution_id: str, report: Done, want: int = 0) -> list[Lease]:
        """Apply a report and receive new work with it. Its id is the report's own, also where it is sent again."""
        answer = await self._session.ask(Report(report.message_id, execution_id, report, want))
        assert isinstance(answer, Leases)
        return list(answer.leases)

    async def heartbeat(self, worker: str, held: Sequence[Held]) -> list[str]:  # noqa: ARG002
        """Keep leases alive; gives the work that must stop. Raises Unreachable where nobody answers."""
        if not self._session.is_open:
            raise Unreachable("there is no session now")
        try:
            async with asyncio.timeout(_BEAT_S):
                answer = await self._session.ask(Heartbeat(tuple(held), uuid4().hex))
        except TimeoutError:
            raise Unreachable("a heartbeat was not answered") from None
        assert isinstance(answer, Stop)
        return list(answer.work)

    async def playbook(self, playbook: str) -> bytes:
        """Give a canonical tree by its content hash; it is fetched once, however many ask."""
        task = self._playbooks.get(playbook)
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            while len(self._playbooks) >= _PLAYBOOKS:
                del self._playbooks[next(iter(self._playbooks))]
            task = self._playbooks[playbook] = asyncio.create_task(self._fetch(playbook))
        return await asyncio.shield(task)

    async def _fetch(self, playbook: str) -> bytes:
        return (await self._http.send("GET", f"/api/playbooks/{playbook}")).content


class RemoteBlobs:
    """The port `Blobs` over HTTP, on the strength of the lease whose work asks."""

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
    """The port `OutboxIn` over HTTP, on the strength of the lease whose work asks."""

    def __init__(self, http: Http, worker: str, lease: Callable[[], Held]) -> None:
        self._http = http
        self._worker = worker
        self._lease = lease

    async def put(self, message: OutboxMessage, now: int) -> int:  # noqa: ARG002 - the server has the time
        """Put a message; sent again after a lost answer, it is the same one."""
        names = ("key", "topic", "target", "address", "payload", "headers", "auth", "available_at")
        asked = OutboxPut(self._lease(), worker=self._worker, **{name: getattr(message, name) for name in names})
        return (await self._http.ask("POST", "/api/worker/outbox", OutboxNumber, asked)).number


class RemoteCredentials:
    """Credentials of the server, opened for the lease whose work asks; kept in memory for that call only."""

    def __init__(self, http: Http, worker: str, lease: Callable[[], Held]) -> None:
        self._http = http
        self._worker = worker
        self._lease = lease

    async def __call__(self, name: str) -> Mapping[str, Any]:
        """Give a credential. Raises KeyError where there is none, CredentialUnavailable where it cannot be had now."""
        asked = CredentialAsked(name, self._lease(), self._worker)
        try:
            return (await self._http.ask("POST", "/api/worker/credential", CredentialGiven, asked)).data
        except InvalidInput:
            raise KeyError(name) from None
        except Denied as error:
            raise CredentialUnavailable(f"the credential `{name}` is not given: {error}") from None
        except NoetlError as error:
            raise CredentialUnavailable(f"the credential `{name}` cannot be had now: {error}", retryable=True) from None
