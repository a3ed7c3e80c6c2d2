"""The outbox; workers put messages. Tested in tests/server/api/test_outbox.py."""

from __future__ import annotations

from noetl.ports.outbox import OutboxMessage
from noetl.server.api.workers.worker import check_mentioned, holder
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.wire.outbox import OutboxDiscard, OutboxNumber, OutboxPut, OutboxQuery, OutboxRow, OutboxRows
from noetl.wire.requests import MOST

_PLAIN = tuple(name for name in OutboxRow.__struct_fields__ if name not in ("payload", "headers"))
noun = Noun("outbox", "Messages for other systems, delivered at least once.")


@noun.route("GET", "/api/outbox", "viewer", problems=(422,))
async def listed(call: Call, query: OutboxQuery) -> OutboxRows:
    """List messages without their payloads, the newest first."""
    outbox = call.services.outbox
    found = await outbox.messages(query.state, query.before, query.limit)
    waiting = await outbox.waiting()
    rows = [OutboxRow(**{name: getattr(message, name) for name in _PLAIN}) for message in found]
    return OutboxRows(messages=rows, pending=waiting["pending"], dead=waiting["dead"])


@noun.route("GET", "/api/outbox/{number}", "operator", problems=(404,))
async def shown(call: Call, number: str) -> OutboxRow:
    """Return a message with its payload."""
    found = await call.services.outbox.message(_number(number))
    if found is None:
        raise _none(number)
    return OutboxRow(
        **{name: getattr(found, name) for name in _PLAIN}, payload=found.payload, headers=dict(found.headers)
    )


@noun.route("POST", "/api/outbox/{number}/retry", "operator", act="outbox.retry", problems=(404,))
async def retry(call: Call, number: str) -> OutboxNumber:
    """Retry a dead or pending message now, with all of its attempts."""
    at = _number(number)
    if not await call.services.outbox.again(at, call.services.clock.now(), call.act(number)):
        raise _none(number)
    return OutboxNumber(number=at)


@noun.route(
    "POST",
    "/api/outbox/{number}/discard",
    "operator",
    act="outbox.discard",
    example={"reason": "the customer was informed by phone"},
    problems=(404, 422),
)
async def discard(call: Call, number: str, body: OutboxDiscard) -> OutboxNumber:
    """Discard a dead or pending message."""
    at = _number(number)
    if not await call.services.outbox.discard(at, body.reason, call.act(number, reason=body.reason)):
        raise _none(number)
    return OutboxNumber(number=at)


@noun.route(
    "POST",
    "/api/worker/outbox",
    "worker",
    example={"work": ["7123:tell#1", 42], "worker": "host:17", "key": "7123:tell:tell_task", "topic": "orders"},
    problems=(403, 409, 422),
)
async def put(call: Call, body: OutboxPut) -> OutboxNumber:
    """Put a message for the leased execution; a repeated key is put once."""
    connection = await holder(call, body.worker, body.work)
    if body.auth:  # the message is delivered with it
        await check_mentioned(call, connection, body.work, body.auth)
    execution_id = body.work[0].partition(":")[0]
    if not body.key.startswith(f"{execution_id}:"):
        detail = f"The key must begin with {execution_id}:, the execution of the lease."
        raise Refusal(422, "invalid-input", detail, where="body key", fix="Use such a key.")
    parts = {name: getattr(body, name) for name in body.__struct_fields__ if name not in ("work", "worker")}
    message = OutboxMessage(**parts, execution_id=execution_id)
    return OutboxNumber(number=await call.services.outbox.put(message, call.services.clock.now()))


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or int(text) > MOST:
        raise _none(text)
    return int(text)


def _none(number: str) -> Refusal:
    return not_found(
        f"The outbox has no message {number}, or it is delivered or discarded.",
        "GET /api/outbox lists the messages and their states.",
    )
