"""The worker's protocol over HTTP: the frames of a session as requests.

What they mean is in `handouts`. Tested in tests/server/test_worker_http.py.
"""

from __future__ import annotations

from noetl.server.api.credentials import vault_of
from noetl.server.endpoint import Call, Noun
from noetl.server.hands import Hand
from noetl.server.problems import Refusal, not_found
from noetl.server.sessions import admitted, welcome, worker_name
from noetl.wire.session import (
    Ack,
    Claim,
    CredentialAsked,
    CredentialGiven,
    Heartbeat,
    Held,
    Hello,
    Leases,
    Release,
    Report,
    Stop,
    Welcome,
)

_HELD = ["7123:fetch#1", 42]
_REPORT = {"type": "Report", "message_id": "7123:fetch#1@42.1", "run_id": "fetch#1", "epoch": 42}
noun = Noun("worker", "Claim, report, heartbeat: what workers do.")


def hand_of(call: Call, given: str) -> Hand:
    """Give the worker that asks."""
    return call.services.handouts.hand(worker_name(call.actor, given))


async def holder(call: Call, given: str, held: Held) -> Hand:
    """Give the worker that asks, if it holds a lease. Raises Refusal."""
    hand = hand_of(call, given)
    if not await call.services.handouts.holds(hand, held):
        raise Refusal(403, "not-held", f"{given} does not hold {held[0]} with epoch {held[1]}")
    return hand


@noun.route(
    "POST",
    "/api/worker/hello",
    "worker",
    act="worker.hello",
    example={"type": "hello", "worker": "host:17", "pools": ["gpu"], "tags": ["gpu"], "capacity": 4, "acks": False},
    problems=(403,),
)
async def hello(call: Call, body: Hello) -> Welcome:
    """Say who asks, before anything else and again after the server forgot."""
    name = admitted(call.actor, body)
    hand, stop = await call.services.handouts.hello(name, body, act=call.act(name, pools=body.pools))
    return welcome(call.services, hand, stop)


@noun.route(
    "POST",
    "/api/worker/claim",
    "worker",
    example={"type": "claim", "id": "c-1", "worker": "host:17", "most": 4, "wait_s": 10},
    problems=(409, 503),
)
async def claim(call: Call, body: Claim) -> Leases:
    """Lease work; sent again under its id, the same work."""
    hand = hand_of(call, body.worker)
    return Leases(body.id, tuple(await call.services.handouts.claim(hand, body)))


@noun.route(
    "POST",
    "/api/worker/report",
    "worker",
    example={"type": "report", "id": "r-1", "worker": "host:17", "execution_id": "7123", "report": _REPORT, "want": 1},
    problems=(404, 409, 503),
)
async def report(call: Call, body: Report) -> Leases:
    """Report on a lease and receive new work with the answer; sent again under its id, nothing is done twice."""
    return await call.services.handouts.report(hand_of(call, body.worker), body)


@noun.route(
    "POST",
    "/api/worker/heartbeat",
    "worker",
    example={"type": "heartbeat", "worker": "host:17", "held": [_HELD]},
    problems=(409,),
)
async def heartbeat(call: Call, body: Heartbeat) -> Stop:
    """Keep leases; gives what is not the worker's any more."""
    hand = hand_of(call, body.worker)
    lost = await call.services.handouts.heartbeat(hand, body.held)
    return Stop(tuple(lost), body.id, hand.draining)


@noun.route(
    "POST", "/api/worker/ack", "worker", example={"type": "ack", "worker": "host:17", "held": [_HELD]}, problems=(409,)
)
async def ack(call: Call, body: Ack) -> Stop:
    """Tell that leases have arrived."""
    call.services.handouts.ack(hand_of(call, body.worker), body.held)
    return Stop()


@noun.route(
    "POST",
    "/api/worker/release",
    "worker",
    example={"type": "release", "worker": "host:17", "held": [_HELD]},
    problems=(409,),
)
async def release(call: Call, body: Release) -> Stop:
    """Give work back that was not started."""
    await call.services.handouts.release(hand_of(call, body.worker), body.held)
    return Stop()


@noun.route(
    "POST",
    "/api/worker/credential",
    "worker",
    act="credential.use",
    example={"name": "pg_main", "worker": "host:17", "work": _HELD},
    problems=(403, 404, 409, 503),
)
async def credential(call: Call, body: CredentialAsked) -> CredentialGiven:
    """Open a credential for a task, on the strength of a lease that the worker holds."""
    await holder(call, body.worker, body.work)
    row = await call.services.team.sealed_credential(body.name)
    if row is None:
        raise not_found(f"there is no credential `{body.name}`", "Put it there: PUT /api/credentials/{name}.")
    data = vault_of(call).open(body.name, bytes(row["sealed"]))
    await call.services.team.audit([call.act(body.name, work=body.work[0], worker=body.worker)])  # before it is given
    return CredentialGiven(body.name, str(row["kind"]), data)
