"""Start executions: by path and version, by content hash, or by text.

A start that is repeated with the same `Idempotency-Key` returns the execution that the first one started: key and execution
id are stored before the start, so a repeated request on any server starts or finds the same execution. Tested in
tests/server/api/test_executions.py.
"""

from __future__ import annotations

from os import urandom
from typing import Any

import msgspec

from noetl.model.errors import Conflict
from noetl.model.messages import Start
from noetl.server.cache.ids import KEY_MS, is_started_by, key_name, new_execution
from noetl.server.feeds.reader import known_id
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.start_request import NAMED, find_playbook, find_started, with_outcome
from noetl.server.operations.forks import submit_with_retry
from noetl.server.problems import Refusal
from noetl.wire.answers import Started
from noetl.wire.older import SeedExecute
from noetl.wire.requests import Execute

_EXAMPLE = {"path": "examples/hello", "payload": {"name": "Ada"}, "tags": ["nightly"], "priority": 5}
_SEED = {"playbook_id": "examples/hello", "parameters": {"name": "Ada"}}
noun = Noun("execute", "Start executions.")


@noun.route(
    "POST",
    "/api/execute",
    "operator",
    status=201,
    act="execution.start",
    example=_EXAMPLE,
    problems=(404, 409, 422, 503),
)
async def execute(call: Call, body: Execute) -> Started:
    """Start an execution; with `wait_ms`, wait for its end."""
    services = call.services
    path, playbook = await find_playbook(call, body)
    now = services.clock.now()
    execution_id, message_id = str(new_execution(now)), urandom(16).hex()
    key = call.idempotency_key()
    if key:
        name = key_name(call.actor.name, key)
        execution_id, message_id = (
            await services.team.keep_key(name, execution_id, now, now - KEY_MS),
            f"{NAMED}{name}",
        )
    if not body.wait_ms:
        return await _begun(call, body, execution_id, message_id, path, playbook)
    with services.control.completion.of(execution_id) as waiting:
        started = await _begun(call, body, execution_id, message_id, path, playbook)
        with services.gate.valid(call.actor):
            ends = await waiting.within(body.wait_ms / 1000, may_be_over=bool(key))
    return await with_outcome(call, started, ends)


@noun.route(
    "POST",
    "/api/executions/execute",
    "operator",
    status=201,
    act="execution.start",
    example=_SEED,
    problems=(404, 409, 422, 503),
)
async def execute_named(call: Call, body: SeedExecute) -> Started:
    """Start an execution (older form of the request)."""
    path = body.path or body.playbook_id or body.playbook_path
    if path is None:
        detail = "The request names no playbook."
        raise Refusal(422, "invalid-input", detail, where="$.playbook_id", fix="Send its path.")
    payload = next(
        (one for one in (body.payload, body.parameters, body.input_payload, body.context) if one is not None), {}
    )
    version = None if body.version in (None, "latest") else _version(body.version)
    return await execute(
        call, Execute(path=path, version=version, payload=payload, tags=body.tags, priority=body.priority)
    )


def _version(given: Any) -> int:
    try:
        return max(1, int(given))
    except ValueError:
        detail = f"{given!r} is not a version."
        raise Refusal(422, "invalid-input", detail, where="$.version", fix="Send a number, or `latest`.") from None


async def _begun(call: Call, body: Execute, execution_id: str, message_id: str, path: str, playbook: str) -> Started:
    is_named = message_id.startswith(NAMED)
    if is_named and (repeated := await find_started(call, execution_id)) is not None:
        await _same(call, execution_id, path, body, message_id)
        call.is_noted = True  # nothing changes
        return repeated
    parent = {"execution_id": known_id(body.parent)} if body.parent is not None else None
    message = Start(
        message_id,
        path,
        playbook,
        body.payload,
        parent,
        tags=tuple(body.tags),
        priority=body.priority,
        trace=body.trace or "",
    )
    act = call.act(execution_id, path=path, playbook=playbook)
    row = await submit_with_retry(call.services.control, execution_id, message, act)
    if is_named:  # a concurrent request with this key may have started it
        await _same(call, execution_id, path, body, message_id)
    return Started(execution_id=execution_id, status=str(row.get("status")), path=path, playbook=playbook)


async def _same(call: Call, execution_id: str, path: str, body: Execute, message_id: str) -> None:
    """Check that a key belongs to the same request. Raises Refusal."""
    [first] = await call.services.store.read(execution_id, 0, 1)
    if not is_started_by(first, message_id):
        raise Conflict(f"The id reserved for this key, {execution_id}, belongs to another execution. Use another key.")
    differs = next(
        (
            name
            for name, given in (("path", path), ("payload", body.payload))
            if msgspec.json.encode(first.payload.get(name) or {}, order="sorted")
            != msgspec.json.encode(given or {}, order="sorted")
        ),
        None,
    )
    if differs is not None:
        raise Refusal(
            409,
            "key-reused",
            f"This key has started execution {execution_id} with another {differs}.",
            where="header Idempotency-Key",
            fix="Use another key for another request.",
        )
