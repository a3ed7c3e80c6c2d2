"""Session of a worker with the servers: resends requests until answered.

A request keeps its id when it is sent again. A broken link is reopened at once, then with back-off, at the next server
if several are configured. Leases that nothing waits for any more are returned. Makes no decisions about work. Tested in
tests/client/test_session.py.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable
from typing import Any, Final

from noetl.client.http import Http
from noetl.client.links import Link, NoSocket, open_http, open_socket, refused
from noetl.clock import SteadyClock, uptime
from noetl.model.errors import Denied, InvalidInput, NoetlError, Unreachable
from noetl.model.work import Lease
from noetl.wire import session as wire

_AGAIN_S: Final = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)  # the first ones are within the time that a server waits
_HELD_S: Final = 1.0  # a link that lasted this long resets the back-off
_ACK_S: Final = 0.05  # acknowledgements are batched
_IDLE_S: Final = 5.0  # longest time between heartbeats

Asked = wire.Claim | wire.Report | wire.Heartbeat
Reply = Callable[[wire.ToWorker | NoetlError], bool]  # called once; False: nothing takes the answer
_log = logging.getLogger(__name__)


class Session:
    """Frames to any server that answers; the session lasts as long as its `run`."""

    def __init__(self, http: Http, hello: Callable[[], wire.Hello], clock: SteadyClock | None = None) -> None:
        self.stopped: Callable[[Iterable[str]], None] = lambda _: None
        self.drained: Callable[[], None] = lambda: None
        self.layer: dict[str, Any] = {}  # the connected server's settings for executions
        self.opened: Callable[[wire.Welcome, str], None] = lambda *_: None
        self._http = http
        self._hello = hello
        self._clock = clock or SteadyClock()
        self._asked_at: dict[str, int] = {}  # uptime when a server was asked for its time, by the id of the frame
        self._link: Link | None = None
        self._asked: dict[str, tuple[Asked, Reply]] = {}
        self._unseen: set[wire.Held] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        self._lost_at: float | None = None  # since when no server is reached

    @property
    def held(self) -> tuple[wire.Held, ...]:
        """The leases that the worker holds."""
        return self._hello().held

    @property
    def is_open(self) -> bool:
        return self._link is not None

    async def run(self) -> None:
        """Keep a link open until cancelled. Raises the error if this worker is rejected."""
        tries = 0
        beating = asyncio.create_task(self._beat())
        try:
            while True:
                try:
                    link = await self._open()
                except (Denied, InvalidInput):
                    raise
                except NoetlError as error:
                    self._lose(f"Cannot connect to a server. {error}")
                    self._http.servers.turn(self._http.servers.url)
                else:
                    began = asyncio.get_running_loop().time()
                    self._find()
                    await self._keep(link)
                    self._lose(f"Lost the server {self._http.servers.url}.")
                    if asyncio.get_running_loop().time() - began > _HELD_S:
                        tries = 0
                wait_s = _AGAIN_S[min(tries, len(_AGAIN_S) - 1)]
                await asyncio.sleep(wait_s * random.uniform(0.7, 1.3))  # not all at once
                tries += 1
        finally:
            beating.cancel()
            self._ended = True
            self._fail(Unreachable("this worker ends"))

    def _lose(self, text: str) -> None:
        if self._lost_at is None:
            self._lost_at = asyncio.get_running_loop().time()
            _log.warning("%s Trying again; work that runs continues.", text)

    def _find(self) -> None:
        if self._lost_at is not None:
            lost_s = asyncio.get_running_loop().time() - self._lost_at
            self._lost_at = None
            _log.info("Connected to the server %s after %.1f s.", self._http.servers.url, lost_s)

    async def _open(self) -> Link:
        asked_at, to = uptime(), self._http.reach()
        try:
            link: Link = await open_socket(to.url, to.token, self._hello(), self._receive)
        except Denied:
            if self._http.reach() == to:
                raise
            raise Unreachable(f"The server {to.url} was restarted.") from None  # it has another token now
        except NoSocket:
            _log.info("no WebSocket gets through to %s; using plain requests", self._http.servers.url)
            link = await open_http(self._http, self._hello(), self._receive)
        if link.welcome.now:
            self._clock.follow(asked_at, link.welcome.now)
        return link

    async def _keep(self, link: Link) -> None:
        self._link = link
        try:
            self.layer.clear()
            self.layer.update(link.welcome.layer)
            self.opened(link.welcome, self._http.servers.url)
            if link.welcome.stop:
                self.stopped(link.welcome.stop)
            if link.welcome.draining:
                self.drained()
            for frame, _ in list(self._asked.values()):
                link.send(frame)
            await link.broken()
        except Unreachable:
            pass
        finally:
            self._link = None
            await link.close()

    def request(self, frame: Asked, reply: Reply) -> None:
        """Send a frame on every new link until it is answered; `reply` is called once."""
        if self._ended:
            reply(Unreachable("this worker ends"))
            return
        self._asked[frame.id] = (frame, reply)
        self._note_beat(frame)
        try:
            self.tell(frame)
        except NoetlError as error:  # it can never be sent
            del self._asked[frame.id]
            reply(error)

    def withdraw(self, frame: Asked) -> None:
        """Stop waiting for an answer; leases that come with it are returned."""
        self._asked.pop(frame.id, None)
        self._asked_at.pop(frame.id, None)

    async def ask(self, frame: Asked) -> wire.ToWorker:
        """Send a frame and return its answer."""
        answer: asyncio.Future[wire.ToWorker | NoetlError] = asyncio.get_running_loop().create_future()

        def reply(found: wire.ToWorker | NoetlError) -> bool:
            if answer.done():
                return False
            answer.set_result(found)
            return True

        self.request(frame, reply)
        try:
            found = await answer
        except asyncio.CancelledError:
            self.withdraw(frame)
            if answer.done() and not answer.cancelled() and isinstance(found := answer.result(), wire.Leases):
                self._send_back(found.leases)  # they came, and are not looked at
            raise
        if isinstance(found, NoetlError):
            raise found
        return found

    def tell(self, frame: wire.FromWorker) -> None:
        """Send a frame without waiting for an answer; without a link it is dropped."""
        try:
            if self._link is not None:
                self._link.send(frame)
        except Unreachable as error:
            _log.debug("A frame waits for the next link: %s", error)

    def _receive(self, frame: wire.ToWorker) -> None:
        if isinstance(frame, wire.Leases):
            if self._answer(frame.id, frame):
                self._acknowledge(frame.leases)
            else:
                self._send_back(frame.leases)
        elif isinstance(frame, wire.Stop):
            asked_at = self._asked_at.pop(frame.id, None)
            if frame.now and asked_at is not None:
                self._clock.follow(asked_at, frame.now)
            self._answer(frame.id, frame)
            if frame.work and not frame.id:
                self.stopped(frame.work)
            if frame.draining:
                self.drained()
        elif isinstance(frame, wire.Drain):
            self.drained()
        elif isinstance(frame, wire.Refused):
            self._answer(frame.id, refused(frame))
            if not frame.id:
                _log.warning("the server refused a frame: %s", refused(frame))

    def _answer(self, name: str, answer: wire.ToWorker | NoetlError) -> bool:
        """Call the reply of the request with this name; return False if there is none."""
        _, reply = self._asked.pop(name, (None, None))
        return reply is not None and reply(answer)

    def _send_back(self, leases: Iterable[Lease]) -> None:
        """Return leases to the server whose claim was withdrawn, or that came twice."""
        mine = set(self.held)
        unwanted = tuple(held for lease in leases if (held := (lease.work.work_id, lease.epoch)) not in mine)
        if unwanted:
            self.tell(wire.Release(unwanted))

    def _acknowledge(self, leases: Iterable[Lease]) -> None:
        for lease in leases:
            self._unseen.add((lease.work.work_id, lease.epoch))
        if self._unseen and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_ACK_S, self._send_acks)

    def _send_acks(self) -> None:
        self._timer = None
        self.tell(wire.Ack(tuple(self._unseen)))
        self._unseen.clear()

    async def _beat(self) -> None:
        """Send heartbeats while nothing is held; the worker itself renews what it holds."""
        while True:
            await asyncio.sleep(_IDLE_S)
            if not self.held:
                self._note_beat(wire.Heartbeat())
                self.tell(wire.Heartbeat())

    def _note_beat(self, frame: Asked) -> None:
        """Note when a server was asked for its time."""
        if isinstance(frame, wire.Heartbeat):
            self._asked_at.setdefault(frame.id, uptime())

    def _fail(self, error: NoetlError) -> None:
        for name in list(self._asked):
            self._answer(name, error)
