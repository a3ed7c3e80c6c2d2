"""The worker's protocol: frames of a session, and the same as HTTP bodies.

One WebSocket at `/api/worker/session`; every frame is one JSON object with a `type`. The worker speaks first:

    worker → hello                 server → welcome, or refused
    worker → claim {id, most}      server → leases {id, leases}       when there is work, or the wait is over
    worker → report {id, …, want}  server → leases {id, leases}       after the commit; new work came with it
    worker → ack {held}                                               of every lease; else it goes back after `ack_ms`
    worker → heartbeat {id, held}  server → stop {id, work}           what is not the worker's any more
                                   server → stop {work}               at once when work is cancelled here
                                   server → drain                     take no more work
    worker → release {held}                                           work that was not started
    worker → drain                                                    claims that wait are answered empty

Sending a claim or a report again under its id is harmless: it is answered with the same leases, also on another session of
the same worker. Held work is named by (work_id, epoch). Over HTTP: POST `/api/worker/hello`, `claim`, `report`, `ack`,
`heartbeat`, `release`, with the frame as the body (its `type` may be left out) and the answering frame as the answer.
Tested in tests/server/test_sessions.py and test_worker_http.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from noetl.model.messages import Report as Done
from noetl.model.work import Lease

Held = tuple[str, Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]]  # (work_id, epoch)
ACK_MS: Final = 2_000  # a hand-off that is not acknowledged by then goes back to the queue
RECONNECT_MS: Final = 300  # a closed session may come back within this; then its leases run out


class Frame(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag=str.lower):
    """What every frame is."""


class Asked(Frame, frozen=True, forbid_unknown_fields=True):
    """What a worker sends; a field that is not known is refused."""


class Hello(Asked, frozen=True):
    """Who speaks: sent first, and again after every reconnect."""

    worker: str  # a name of its own, such as host:process; the same after a reconnect
    pools: tuple[str, ...] = ("",)  # whose work it takes; "" is where work goes that names no pool
    tags: tuple[str, ...] = ()  # what it has, such as gpu
    capacity: int = 1
    held: tuple[Held, ...] = ()  # all that it still has in its hands; whatever else it had leases of runs out
    token: str | None = None  # where the Authorization header cannot be set
    host: str = ""
    version: str = ""
    acks: bool = True  # it acknowledges leases; one that does not keeps them for the whole lease, seen or not


class Claim(Asked, frozen=True):
    """Ask for work."""

    id: str
    most: int = 1
    wait_s: float = 0.0  # how long the answer may wait for work; at most 30
    worker: str = ""  # over HTTP: who asks


class Report(Asked, frozen=True):
    """What was done on a lease, and how much new work is wanted with the answer."""

    id: str
    execution_id: str
    report: Done
    want: int = 0
    worker: str = ""


class Ack(Asked, frozen=True):
    """These leases have arrived."""

    held: tuple[Held, ...]
    worker: str = ""


class Heartbeat(Asked, frozen=True):
    """These leases are to be kept."""

    held: tuple[Held, ...] = ()
    id: str = ""
    worker: str = ""


class Release(Asked, frozen=True):
    """These leases go back unstarted; the delivery is not counted."""

    held: tuple[Held, ...]
    worker: str = ""


class Drain(Asked, frozen=True):
    """From a worker: it takes no more work. From a server: it is to take no more."""

    worker: str = ""


class Welcome(Frame, frozen=True):
    """The session stands. `stop` names work of `held` that is not the worker's any more."""

    worker: str  # as it is known from now on: in the log, in lists
    server: str
    lease_ms: int
    heartbeat_ms: int  # how often to send a heartbeat at least
    ack_ms: int = ACK_MS
    stop: tuple[str, ...] = ()
    draining: bool = False
    layer: dict[str, Any] = {}  # the server's settings for executions, below those of their playbooks


class Leases(Frame, frozen=True):
    """Work, as the answer to a claim or a report. `status` tells what became of a report."""

    id: str
    leases: tuple[Lease, ...] = ()
    status: str = "applied"  # applied, duplicate, late


class Stop(Frame, frozen=True):
    """Work ids that are not the worker's any more: lost or cancelled. The answer to a heartbeat names its id."""

    work: tuple[str, ...] = ()
    id: str = ""
    draining: bool = False


class Refused(Frame, frozen=True):
    """A frame could not be used, or could not be used now: `problem` is the same object that HTTP errors have."""

    problem: Any  # of wire.problem.Problem
    id: str = ""


FromWorker = Hello | Claim | Report | Ack | Heartbeat | Release | Drain
ToWorker = Welcome | Leases | Stop | Drain | Refused


class CredentialAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask for a credential that a task names, on the strength of a lease: POST `/api/worker/credential`."""

    name: str
    work: Held
    worker: str = ""


class CredentialGiven(msgspec.Struct, frozen=True):
    """What a credential holds, for the worker's memory only."""

    name: str
    kind: str
    data: dict[str, Any]
