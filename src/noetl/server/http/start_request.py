"""Parse a request that starts executions: find its playbook, or its first start.

Starts nothing. Tested in tests/server/api/test_executions.py and test_execute_many.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import asdict, replace

from noetl.ports import AuditEntry
from noetl.server.cache.catalog_lookup import similar_path
from noetl.server.feeds.completion import Ended
from noetl.server.http.endpoint import Call
from noetl.server.http.playbook_check import check_playbook
from noetl.server.problems import Refusal, not_found
from noetl.wire.answers import Started
from noetl.wire.requests import StartAsked

NAMED = "start:"  # prefix of the message id of a start with an idempotency key


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
        place = f"by-content/{made.playbook[:16]}"
        now = call.services.clock.now()
        act = AuditEntry(now, call.actor.name, "playbook.register", place, {"playbook": made.playbook})
        await call.services.store.register(place, made.content, made.canonical, made.playbook, now, act)
        return made.path, made.playbook
    if body.path is not None:
        playbook = await call.services.lookups.content_hash(body.path, body.version)
        if playbook is None:
            which = f"version {body.version} of `{body.path}`" if body.version else f"`{body.path}`"
            near = await similar_path(call.services.store, body.path)
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
    plan = await call.services.control.plan(playbook)
    return plan.playbook.path, playbook


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
