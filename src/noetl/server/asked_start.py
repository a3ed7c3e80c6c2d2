"""What a request that starts executions means: the playbook that it names, and the key with which it may be sent again.

Starts nothing. Tested in tests/server/test_api_executions.py and test_execute_many.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import asdict, replace

from noetl.ports import AuditEntry
from noetl.server.auth import forbidden, may
from noetl.server.checking import checked
from noetl.server.endings import Ended
from noetl.server.endpoint import Call
from noetl.server.problems import Refusal, not_found
from noetl.wire.answers import Started
from noetl.wire.requests import StartAsked

NAMED = "start:"  # begins the message of a start that may be sent again
_MOST_KEY = 200


def key_of(call: Call) -> str:
    """Give the key of a request that may be sent again; none is empty."""
    key = call.header(b"idempotency-key")
    if len(key) > _MOST_KEY:
        raise Refusal(422, "invalid-input", f"the key is longer than {_MOST_KEY}", where="header Idempotency-Key")
    return key


async def meant(call: Call, body: StartAsked) -> tuple[str, str]:
    """Give the path and the content hash that a start means."""
    if (body.content is None) == (body.path is None and body.playbook is None):
        raise Refusal(
            422,
            "invalid-input",
            "a start names one playbook: its `path`, its content hash in `playbook`, or its text in `content`",
            where="$",
        )
    if body.content is not None:
        if not may(call.actor, "editor"):  # it brings a playbook that nobody has registered
            raise forbidden(call.actor, "editor")
        made = await checked(call.services, body.content)
        place = f"by-content/{made.playbook[:16]}"
        now = call.services.clock.now()
        act = AuditEntry(now, call.actor.name, "playbook.register", place, {"playbook": made.playbook})
        await call.services.store.register(place, made.content, made.canonical, made.playbook, now, act)
        return made.path, made.playbook
    if body.path is not None:
        playbook = await call.services.lookups.content_hash(body.path, body.version)
        if playbook is None:
            which = f"version {body.version} of `{body.path}`" if body.version else f"`{body.path}`"
            raise not_found(
                f"the catalog has no {which}", "Register it with POST /api/catalog, or check path and version."
            )
        if body.playbook is not None and body.playbook != playbook:
            raise Refusal(409, "conflict", f"`{body.path}` has another content hash", where="$.playbook")
        return body.path, playbook
    playbook = str(body.playbook)
    plan = await call.services.control.plan(playbook)
    return plan.playbook.path, playbook


async def found(call: Call, execution_id: str) -> Started | None:
    """Give the execution of a key, where it has started before."""
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


async def told(call: Call, started: Started, ends: Mapping[str, Ended]) -> Started:
    """Tell of a start how it ended, or how it stands."""
    ended = ends.get(started.execution_id)
    if ended is not None:
        return replace(started, **asdict(ended))
    row = await call.services.store.execution(started.execution_id)
    return started if row is None else replace(started, status=str(row.get("status")))
