"""The queue in the older words: lease, heartbeat and events, with the meaning of the worker's protocol.

Tested in tests/server/test_worker_http.py.
"""

from __future__ import annotations

from uuid import uuid4

from noetl.server.api.worker import hand_of
from noetl.server.endpoint import Call, Noun
from noetl.server.sessions import admitted
from noetl.wire.requests import SeedHeartbeat, SeedLease
from noetl.wire.session import Claim, Hello, Leases, Report, Stop

noun = Noun("queue", "The worker's protocol in the older words.")


@noun.route("POST", "/queue/lease", "worker", example={"worker_id": "host:17", "lease_seconds": 60}, problems=(403,))
async def lease(call: Call, body: SeedLease) -> Leases:
    """Lease work that is there now."""
    handouts = call.services.handouts
    hello = Hello(body.worker_id, (body.pool,), acks=False)
    hand, _ = await handouts.hello(admitted(call.actor, hello), hello)
    claim = Claim(uuid4().hex, body.limit)
    return Leases(claim.id, tuple(await handouts.claim(hand, claim)))


@noun.route(
    "POST",
    "/api/queue/{work_id}/heartbeat",
    "worker",
    example={"worker_id": "host:17", "epoch": 42},
    problems=(409,),
)
async def heartbeat(call: Call, work_id: str, body: SeedHeartbeat) -> Stop:
    """Keep one lease; gives it back as stopped where it is not the worker's any more."""
    hand = hand_of(call, body.worker_id)
    return Stop(tuple(await call.services.handouts.heartbeat(hand, [(work_id, body.epoch)])), "", hand.draining)


@noun.route("POST", "/events", "worker", problems=(404, 409, 503))
async def events(call: Call, body: Report) -> Leases:
    """Report what happened on a lease."""
    return await call.services.handouts.report(hand_of(call, body.worker), body)
