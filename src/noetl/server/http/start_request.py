"""Requests that start executions: find the playbook, start it once per key.

Key and execution id are stored before the start, so a repeated request on any server starts or finds the same execution.
Tested in tests/server/api/test_executions.py, test_execute_many.py and triggers/test_webhooks.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import urandom

import msgspec
from msgspec.structs import asdict, replace

from noetl.model.errors import Conflict
from noetl.model.messages import Start
from noetl.ports import AuditEntry
from noetl.server.auth.gate import refusal
from noetl.server.cache.catalog_lookup import similar_path
from noetl.server.cache.ids import KEY_MS, is_started_by, new_execution
from noetl.server.cache.plan_cache import unknown_playbook
from noetl.server.feeds.completion import Ended
from noetl.server.feeds.reader import known_id
from noetl.server.http.endpoint import Call
from noetl.server.http.playbook_check import check_playbook
from noetl.server.operations.forks import submit_with_retry
from noetl.server.problems import Refusal, not_found
from noetl.trace_context import parse_traceparent
from noetl.wire.answers import Started
from noetl.wire.requests import Execute, StartAsked

NAMED = "start:"  # prefix of the message id of a start with an idempotency key


async def start(call: Call, body: Execute, name: str, *, is_checked: bool = True) -> Started:
    """Start an execution, or find the one of a key by its stored name. Raises Refusal.

    With `wait_ms`, wait for its end. Unless `is_checked`, a repeated request may have another payload.
    """
    services = call.services
    await check_parent(call, body.parent)
    path, playbook = await find_playbook(call, body)
    now = services.clock.now()
    execution_id, message_id = str(new_execution(now)), urandom(16).hex()
    if name:
        execution_id = await services.team.keep_key(name, execution_id, now, now - KEY_MS)
        message_id = f"{NAMED}{name}"
    compared = {"path": path, "payload": body.payload} if is_checked else {"path": path}
    if not body.wait_ms:
        return await _begun(call, body, execution_id, message_id, (path, playbook), compared)
    with services.control.completion.of(execution_id) as waiting:
        started = await _begun(call, body, execution_id, message_id, (path, playbook), compared)
        with services.gate.valid(call.actor):
            ends = await waiting.within(body.wait_ms / 1000, may_be_over=bool(name))
    return await with_outcome(call, started, ends)


async def _begun(
    call: Call,
    body: Execute,
    execution_id: str,
    message_id: str,
    source: tuple[str, str],
    compared: Mapping[str, object],
) -> Started:
    path, playbook = source
    is_named = message_id.startswith(NAMED)
    if is_named and (repeated := await find_started(call, execution_id)) is not None:
        await _same(call, execution_id, compared, message_id)
        call.skip_audit()  # nothing changes
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
        trace=trace_asked(call, body),
    )
    act = call.act(execution_id, path=path, playbook=playbook)
    row = await submit_with_retry(call.services.control, execution_id, message, act)
    if is_named:  # a concurrent request with this key may have started it
        await _same(call, execution_id, compared, message_id)
    return Started(execution_id=execution_id, status=str(row.get("status")), path=path, playbook=playbook)


def trace_asked(call: Call, body: StartAsked) -> str:
    """Return the trace context of a start: of its body, else of its header."""
    if body.trace or not call.services.tracing.is_on:
        return body.trace or ""
    given = call.header(b"traceparent")
    return given if parse_traceparent(given) is not None else ""


async def _same(call: Call, execution_id: str, compared: Mapping[str, object], message_id: str) -> None:
    """Check that a key belongs to the same request. Raises Refusal."""
    [first] = await call.services.store.read(execution_id, 0, 1)
    if not is_started_by(first, message_id):
        raise Conflict(f"The id reserved for this key, {execution_id}, belongs to another execution. Use another key.")
    differs = next(
        (
            name
            for name, given in compared.items()
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


async def find_playbook(call: Call, body: StartAsked) -> tuple[str, str]:
    """Return path and content hash of the playbook to start. Raises Refusal."""
    if (body.content is None) == (body.path is None and body.playbook is None):
        raise Refusal(
            422,
            "invalid-input",
            "A start must name one playbook.",
            where="$",
            fix="Send its `path`, its content hash in `playbook`, or its text in `content`.",
        )
    if body.content is not None:
        call.require("editor")  # the playbook is not registered
        made = await check_playbook(call.services, body.content)
        if not call.sees(made.path):
            raise refusal(call.actor, "editor")
        call.require("editor")  # there
        place = f"by-content/{made.playbook[:16]}"
        now = call.services.clock.now()
        act = AuditEntry(now, call.actor.name, "playbook.register", place, {"playbook": made.playbook})
        await call.services.store.register(place, made.content, made.canonical, made.playbook, now, act)
        return made.path, made.playbook
    if body.path is not None:
        is_seen = call.sees(body.path)
        playbook = await call.services.lookups.content_hash(body.path, body.version) if is_seen else None
        if playbook is None:
            which = f"version {body.version} of `{body.path}`" if body.version else f"`{body.path}`"
            near = await similar_path(call.services.store, body.path, call.reach)
            raise not_found(
                f"The catalog has no {which}.{near}", "Register it with POST /api/catalog, or check path and version."
            )
        if body.playbook is not None and body.playbook != playbook:
            raise Refusal(
                409,
                "conflict",
                f"`{body.path}` has another content hash.",
                where="$.playbook",
                fix="Send the path or the hash alone.",
            )
        return body.path, playbook
    playbook = str(body.playbook)
    return await path_of_pinned(call, playbook), playbook


async def path_of_pinned(call: Call, playbook: str) -> str:
    """Return the path of a playbook by its content hash, if it exists for the caller."""
    plan = await call.services.control.plan(playbook)
    if not call.sees(plan.playbook.path):
        raise unknown_playbook(playbook)
    return plan.playbook.path


async def check_parent(call: Call, parent: str | None) -> None:
    """Check that the parent of a start exists for the caller. Raises UnknownExecution."""
    if parent is not None:
        await call.find_execution(known_id(parent))


async def find_started(call: Call, execution_id: str) -> Started | None:
    """Return the execution that an earlier request with the same key started, or None."""
    row = await call.services.store.execution(execution_id)
    if row is None:
        return None
    return Started(
        execution_id=execution_id,
        status=str(row.get("status")),
        path=str(row.get("path", "")),
        playbook=str(row.get("playbook", "")),
        repeated=True,
    )


async def with_outcome(call: Call, started: Started, ends: Mapping[str, Ended]) -> Started:
    """Return a start with the outcome of its execution, or with its current status."""
    ended = ends.get(started.execution_id)
    if ended is not None:
        return replace(started, **asdict(ended))
    row = await call.services.store.execution(started.execution_id)
    return started if row is None else replace(started, status=str(row.get("status")))
