"""The worker protocol over HTTP. Tested in tests/server/api/test_worker.py."""

from __future__ import annotations

from noetl.model.errors import InvalidInput
from noetl.server.api.catalog.credentials import vault_of
from noetl.server.auth.access_tokens import SharedTokens
from noetl.server.auth.mentioned_credentials import mentioned_in, mentioned_in_patch
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.worker_socket import admitted, welcome, worker_name
from noetl.server.problems import Refusal, not_found
from noetl.server.workers.registry import WorkerConnection
from noetl.wire.session import (
    AccessTokenAsked,
    AccessTokenGiven,
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
noun = Noun("worker", "The worker protocol: claim, report, heartbeat.")


def connection_of(call: Call, given: str) -> WorkerConnection:
    """Return the calling worker. Raises Refusal."""
    return call.services.registry.connection(worker_name(call.actor, given))


async def holder(call: Call, given: str, held: Held) -> WorkerConnection:
    """Return the calling worker if it holds the lease. Raises Refusal."""
    connection = connection_of(call, given)
    if not await call.services.registry.holds(connection, held):
        detail = f"The worker {given} does not hold {held[0]} with epoch {held[1]}."
        raise Refusal(403, "not-held", detail, fix="Stop this work; its lease is lost.")
    return connection


async def check_mentioned(call: Call, connection: WorkerConnection, held: Held, name: str) -> None:
    """Check that the playbook of a lease names a credential. Raises Refusal."""
    services, work = call.services, call.services.registry.work(connection, held)
    if work is not None:
        playbook, patch = work.playbook, work.patch
    else:  # leased by another server
        execution_id, run_id = held[0].split(":")[:2]
        state = await services.reader.state(execution_id)
        run = state.replays.get(run_id)
        playbook, patch = state.playbook, {"values": (run.of or {}).get("patch")} if run is not None else None
    if name in mentioned_in(await services.control.playbook(playbook)) or name in mentioned_in_patch(patch):
        return
    detail = f"The playbook of {held[0]} does not name the credential `{name}`."
    raise Refusal(403, "not-mentioned", detail, fix="Name it in `auth` or `keychain` of the playbook.")


@noun.route(
    "POST",
    "/api/worker/hello",
    "worker",
    act="worker.hello",
    example={"type": "hello", "worker": "host:17", "pools": ["gpu"], "tags": ["gpu"], "capacity": 4, "acks": False},
    problems=(403,),
)
async def hello(call: Call, body: Hello) -> Welcome:
    """Register a worker; required first, and again after an `unknown-worker` error."""
    name = admitted(call.actor, body)
    connection, stop = await call.services.registry.hello(name, body, act=call.act(name, pools=body.pools))
    return welcome(call.services, connection, stop)


@noun.route(
    "POST",
    "/api/worker/claim",
    "worker",
    example={"type": "claim", "id": "c-1", "worker": "host:17", "most": 4, "wait_s": 10},
    problems=(409, 503),
)
async def claim(call: Call, body: Claim) -> Leases:
    """Lease work; idempotent by `id`."""
    connection = connection_of(call, body.worker)
    with call.services.gate.valid(call.actor):
        return Leases(body.id, tuple(await call.services.registry.claim(connection, body)))


@noun.route(
    "POST",
    "/api/worker/report",
    "worker",
    example={"type": "report", "id": "r-1", "worker": "host:17", "execution_id": "7123", "report": _REPORT, "want": 1},
    problems=(404, 409, 503),
)
async def report(call: Call, body: Report) -> Leases:
    """Report on a lease and receive new work with the answer; idempotent by `id`."""
    return await call.services.registry.report_wait(connection_of(call, body.worker), body)


@noun.route(
    "POST",
    "/api/worker/heartbeat",
    "worker",
    example={"type": "heartbeat", "worker": "host:17", "held": [_HELD]},
    problems=(409,),
)
async def heartbeat(call: Call, body: Heartbeat) -> Stop:
    """Renew leases; the answer names the work of lost ones."""
    connection = connection_of(call, body.worker)
    lost = await call.services.registry.heartbeat(connection, body.held)
    return Stop(tuple(lost), body.id, connection.draining, call.services.clock.now())


@noun.route(
    "POST", "/api/worker/ack", "worker", example={"type": "ack", "worker": "host:17", "held": [_HELD]}, problems=(409,)
)
async def ack(call: Call, body: Ack) -> Stop:
    """Acknowledge leases."""
    call.services.registry.ack(connection_of(call, body.worker), body.held)
    return Stop()


@noun.route(
    "POST",
    "/api/worker/release",
    "worker",
    example={"type": "release", "worker": "host:17", "held": [_HELD]},
    problems=(409,),
)
async def release(call: Call, body: Release) -> Stop:
    """Return leases whose work was not started."""
    await call.services.registry.release(connection_of(call, body.worker), body.held)
    return Stop()


@noun.route(
    "POST",
    "/api/worker/access-token",
    "worker",
    example={"key": "0" * 64, "worker": "host:17", "work": _HELD, "seen": 1},
    problems=(403, 409, 503),
)
async def access_token(call: Call, body: AccessTokenAsked) -> AccessTokenGiven:
    """Return an access token that workers share, or the right to fetch it."""
    await holder(call, body.worker, body.work)
    services = call.services
    shared = SharedTokens(lambda: services.team, lambda: services.vault, services.clock, body.worker)
    if body.keeps:
        return AccessTokenGiven(version=await shared.keep(body.key, body.token, body.expires_at))
    offer = await shared.ask(body.key, body.seen)
    token = None if offer.token is None else dict(offer.token)
    newest = {"refresh_token": offer.refresh_token} if offer.refresh_token else {}
    services.handed_out.learn("access token", {**newest, **(token or {})})
    return AccessTokenGiven(token, offer.expires_at, offer.version, offer.may_fetch, offer.refresh_token)


@noun.route(
    "POST",
    "/api/worker/credential",
    "worker",
    act="credential.use",
    example={"name": "pg_main", "worker": "host:17", "work": _HELD},
    problems=(403, 404, 409, 503),
)
async def credential(call: Call, body: CredentialAsked) -> CredentialGiven:
    """Return a decrypted credential that the playbook of a lease names."""
    await check_mentioned(call, await holder(call, body.worker, body.work), body.work, body.name)
    row = await call.services.team.sealed_credential(body.name)
    if row is None:
        raise not_found(f"No credential `{body.name}`.", "Store it with PUT /api/credentials/{name}.")
    try:
        data = await vault_of(call).open(call.services.team, body.name, bytes(row["sealed"]))
    except InvalidInput as error:  # not 400, by which a worker understands that there is none
        raise Refusal(403, "sealed", str(error)) from None
    call.services.handed_out.learn(body.name, data)
    # Before it is returned.
    await call.services.team.audit([call.act(body.name, work=body.work[0], worker=body.worker)])
    return CredentialGiven(body.name, str(row["kind"]), data)
