"""The worker protocol: frames of a session, and the same as HTTP bodies.

One WebSocket at `/api/worker/session`; every frame is one JSON object with a `type`. The worker sends first:

    worker → hello                 server → welcome, or refused
    worker → claim {id, most}      server → leases {id, leases}       when there is work, or the wait has timed out
    worker → report {id, …, want}  server → leases {id, leases}       after the commit, with new work
    worker → ack {held}                                               for every lease; else it is taken back after `ack_ms`
    worker → heartbeat {id, held}  server → stop {id, work}           work of lost leases
                                   server → stop {work}               at once when work is cancelled
                                   server → drain                     take no more work
    worker → release {held}                                           work that was not started
    worker → drain                                                    waiting claims are answered empty

Claims and reports are idempotent by `id`, also on another session of the same worker: the answer holds the same leases. Held
work is named by (work_id, epoch). Over HTTP: POST `/api/worker/hello`, `claim`, `report`, `ack`, `heartbeat`, `release`, with
the frame as body (`type` is optional) and the answering frame as answer.
Tested in tests/server/http/test_worker_socket.py and test_worker_http.py.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from noetl.model.messages import Report as Done
from noetl.model.work import Lease

Held = tuple[str, Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]]  # (work_id, epoch)
ACK_MS: Final = 2_000  # a lease that is not acknowledged within this goes back to the queue
RECONNECT_MS: Final = 300  # a worker may reconnect within this; then its leases expire


class Frame(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="type", tag=str.lower):
    """Base of all frames."""


class Asked(Frame, frozen=True, forbid_unknown_fields=True):
    """Base of the frames of a worker; unknown fields are refused."""


class Hello(Asked, frozen=True):
    """Register a worker: sent first, and after every reconnect."""

    worker: str  # a unique name, such as host:process; the same after a reconnect
    pools: tuple[str, ...] = ("",)  # "" is the default pool
    tags: tuple[str, ...] = ()  # capabilities, such as gpu
    capacity: int = 1
    held: tuple[Held, ...] = ()  # all leases that it holds; its other leases expire
    token: str | None = None  # for clients that cannot set the Authorization header
    host: str = ""
    version: str = ""
    credentials: tuple[str, ...] | None = None  # in its environment: `PG_MAIN` for NOETL_CREDENTIAL_PG_MAIN
    acks: bool = True  # it acknowledges leases; otherwise an undelivered lease is lost until it expires


class Claim(Asked, frozen=True):
    """Ask for work."""

    id: str
    most: int = 1
    wait_s: float = 0.0  # how long to wait for work; at most 30
    is_for_idle: bool = False  # only work of playbooks that have none leased: one item of each
    worker: str = ""  # over HTTP: the calling worker


class Report(Asked, frozen=True):
    """The outcome of leased work, and how much new work is wanted."""

    id: str
    execution_id: str
    report: Done
    want: int = 0
    worker: str = ""


class Ack(Asked, frozen=True):
    """Acknowledge leases."""

    held: tuple[Held, ...]
    worker: str = ""


class Heartbeat(Asked, frozen=True):
    """Renew leases."""

    held: tuple[Held, ...] = ()
    id: str = ""
    worker: str = ""


class Release(Asked, frozen=True):
    """Return leases whose work was not started; not counted as an attempt."""

    held: tuple[Held, ...]
    worker: str = ""


class Drain(Asked, frozen=True):
    """From a worker: it takes no more work. From a server: take no more work."""

    worker: str = ""


class Welcome(Frame, frozen=True):
    """The session is open. `stop` names work of `held` whose lease is lost."""

    worker: str  # the worker's name in logs and lists
    server: str
    lease_ms: int
    heartbeat_ms: int  # maximum time between heartbeats
    ack_ms: int = ACK_MS
    stop: tuple[str, ...] = ()
    draining: bool = False
    layer: dict[str, Any] = {}  # the server's settings for executions; playbooks override them
    now: int = 0  # the server's clock, which the worker follows


class Leases(Frame, frozen=True):
    """Answer to a claim or a report: new leases, and the `status` of the report."""

    id: str
    leases: tuple[Lease, ...] = ()
    status: str = "applied"  # applied, duplicate, late


class Stop(Frame, frozen=True):
    """Ids of work to stop; the answer to a heartbeat has its `id`."""

    work: tuple[str, ...] = ()
    id: str = ""
    draining: bool = False
    now: int = 0  # the server's clock, in an answer to a heartbeat


class Refused(Frame, frozen=True):
    """A frame was refused; `problem` has the format of HTTP errors."""

    problem: Any  # wire.problem.Problem
    id: str = ""


FromWorker = Hello | Claim | Report | Ack | Heartbeat | Release | Drain
ToWorker = Welcome | Leases | Stop | Drain | Refused


class CredentialAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Request a credential by a lease: POST `/api/worker/credential`."""

    name: str
    work: Held
    worker: str = ""


class AccessTokenAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Ask for or share an access token by a lease: POST `/api/worker/access-token`.

    `key` is a hash of the request for the token, which only its users can know.
    """

    key: Annotated[str, msgspec.Meta(min_length=64, max_length=64)]
    work: Held
    worker: str = ""
    seen: int = 0  # version of a token that was refused
    keeps: bool = False  # share `token`; without one, give the right to fetch it back
    token: dict[str, Any] | None = None
    expires_at: Annotated[int, msgspec.Meta(ge=0, lt=2**53)] = 0


class AccessTokenGiven(msgspec.Struct, frozen=True):
    """A shared access token, or the right to fetch it; neither: ask again soon."""

    token: dict[str, Any] | None = None
    expires_at: int = 0
    version: int = 0
    may_fetch: bool = False
    refresh_token: str = ""  # with the right: the newest that a worker has shared


class CredentialGiven(msgspec.Struct, frozen=True):
    """The decrypted credential; the worker keeps it in memory only."""

    name: str
    kind: str
    data: dict[str, Any]
