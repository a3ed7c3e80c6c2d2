"""The outbox: messages that wait for the relay, those that it gave up, and what a person does about them.

A worker puts messages for the execution whose work it holds. Tested in tests/server/test_outbox.py.
"""

from __future__ import annotations

from noetl.ports.outbox import OutboxMessage
from noetl.server.api.worker import holder
from noetl.server.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.wire.outbox import OutboxDiscard, OutboxNumber, OutboxPut, OutboxQuery, OutboxRow, OutboxRows
from noetl.wire.requests import MOST

_PLAIN = tuple(name for name in OutboxRow.__struct_fields__ if name not in ("payload", "headers"))
noun = Noun("outbox", "Messages for other systems, delivered at least once.")


@noun.route("GET", "/api/outbox", "viewer", problems=(422,))
async def listed(call: Call, query: OutboxQuery) -> OutboxRows:
    """List messages, the newest first, without what they say."""
    outbox = call.services.outbox
    found = await outbox.messages(query.state, query.before, query.limit)
    waiting = await outbox.waiting()
    rows = [OutboxRow(**{name: getattr(message, name) for name in _PLAIN}) for message in found]
    return OutboxRows(messages=rows, pending=waiting["pending"], dead=waiting["dead"])


@noun.route("GET", "/api/outbox/{number}", "operator", problems=(404,))
async def shown(call: Call, number: str) -> OutboxRow:
    """Show a message whole."""
    found = await call.services.outbox.message(_number(number))
    if found is None:
        raise _none(number)
    return OutboxRow(
        **{name: getattr(found, name) for name in _PLAIN}, payload=found.payload, headers=dict(found.headers)
    )


@noun.route("POST", "/api/outbox/{number}/retry", "operator", act="outbox.retry", problems=(404,))
async def retry(call: Call, number: str) -> OutboxNumber:
    """Send a message that is dead or waits at once, with all of its attempts."""
    at = _number(number)
    if not await call.services.outbox.again(at, call.services.clock.now(), call.act(number)):
        raise _none(number)
    return OutboxNumber(number=at)


@noun.route(
    "POST",
    "/api/outbox/{number}/discard",
    "operator",
    act="outbox.discard",
    example={"reason": "the customer was told by phone"},
    problems=(404, 422),
)
async def discard(call: Call, number: str, body: OutboxDiscard) -> OutboxNumber:
    """Give up a message that is dead or waits."""
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
    """Put a message for the execution whose work is held; the same key is put once."""
    await holder(call, body.worker, body.work)
    execution_id = body.work[0].partition(":")[0]
    if not body.key.startswith(f"{execution_id}:"):
        raise Refusal(422, "invalid-input", f"a key of this work begins with {execution_id}:", where="body key")
    parts = {name: getattr(body, name) for name in body.__struct_fields__ if name not in ("work", "worker")}
    message = OutboxMessage(**parts, execution_id=execution_id)
    return OutboxNumber(number=await call.services.outbox.put(message, call.services.clock.now()))


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 16 or int(text) > MOST:
        raise _none(text)
    return int(text)


def _none(number: str) -> Refusal:
    return not_found(
        f"the outbox has no such message {number}, or it is delivered or discarded",
        "GET /api/outbox lists the messages and their states.",
    )
