"""Start many executions of one playbook by one request: one for each payload.

The request is validated before anything starts, and all starts are submitted together, so few transactions write them. A
request that is repeated with the same `Idempotency-Key` returns the same executions: every place in the list has a key of
its own, and a digest of the request is stored with them, so other payloads under the same key start nothing. Each start is decided by
itself: where a limit rejects some, the others run, and the answer says which. Tested in
tests/server/api/test_execute_many.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from os import urandom
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from noetl.engine.routing.route import failure
from noetl.model.errors import Conflict, LimitReached
from noetl.model.messages import Start
from noetl.ports import AuditEntry
from noetl.ports.work import Answer
from noetl.server.cache.ids import KEY_MS, is_started_by, key_name, new_execution
from noetl.server.feeds.reader import known_id
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.start_request import NAMED, check_parent, find_playbook, find_started, trace_asked, with_outcome
from noetl.server.problems import Refusal, problem_of
from noetl.wire.answers import Started, StartedMany
from noetl.wire.requests import ExecuteMany

_EXAMPLE = {"path": "examples/hello", "payloads": [{"name": "Ada"}, {"name": "Grace"}], "tags": ["nightly"]}
_TRIES = 20
_AGAIN_S = 0.05
_REJECTED = "rejected"  # the status of a start that a limit refused
noun = Noun("execute_many", "Start many executions at once.")


class _Places(Struct, frozen=True):
    """Execution ids and message ids, in the order of the payloads."""

    ids: list[str]
    messages: list[str]
    older: frozenset[int] = frozenset()  # places reserved by an earlier request with the same key, started or not


@noun.route(
    "POST",
    "/api/execute/many",
    "operator",
    status=201,
    act="execution.start",
    example=_EXAMPLE,
    problems=(404, 409, 422, 429, 503),
    of="path",
)
async def execute_many(call: Call, body: ExecuteMany) -> StartedMany:
    """Start an execution for each payload; with `wait_ms`, wait for their ends."""
    key = call.idempotency_key()
    await check_parent(call, body.parent)
    path, playbook = await find_playbook(call, body)
    parent = {"execution_id": known_id(body.parent)} if body.parent is not None else None
    like = Start("", path, playbook, {}, parent, tags=body.tags, priority=body.priority, trace=trace_asked(call, body))
    await call.services.control.require_credentials(playbook)
    wrong = await call.services.control.misfit(like, body.payloads)
    if wrong is not None:
        raise Refusal(422, "invalid-payload", str(wrong[1]), where=f"$.payloads[{wrong[0]}]")
    places = await _places(call, key, path, body.payloads)
    if not body.wait_ms:
        return _counted(await _begun(call, like, body.payloads, places))
    with call.services.control.completion.of(*places.ids) as waiting:
        begun = await _begun(call, like, body.payloads, places)
        waiting.forget(*(name for name, one in zip(places.ids, begun, strict=True) if one.status == _REJECTED))
        with call.services.gate.valid(call.actor):
            ends = await waiting.within(body.wait_ms / 1000, may_be_over=bool(places.older))
        return _counted([one if one.status == _REJECTED else await with_outcome(call, one, ends) for one in begun])


async def _places(call: Call, key: str, path: str, payloads: Sequence[Mapping[str, Any]]) -> _Places:
    """Assign an execution id to each place; the same ones for the same key."""
    now = call.services.clock.now()
    ids = [str(new_execution(now)) for _ in payloads]
    if not key:
        name = urandom(16).hex()
        return _Places(ids, [f"{name}.{place}" for place in range(len(ids))])
    names = [key_name(call.actor.name, f"{key}\0{place}") for place in range(len(ids))]
    whole = msgspec.json.encode([path, payloads], order="sorted")
    asked = f"-{int.from_bytes(sha256(whole).digest()[:7]) + 1}"  # no execution has such an id
    about = key_name(call.actor.name, f"{key}\0payloads")
    # The digest is stored first and alone: a request with other payloads then reserves no place.
    if await call.services.team.keep_key(about, asked, now, now - KEY_MS) != asked:
        raise Refusal(
            409,
            "key-reused",
            "This key has started executions with another path, or other payloads.",
            where="header Idempotency-Key",
            fix="Use another key for another request.",
        )
    kept = await call.services.team.keep_keys(dict(zip(names, ids, strict=True)), now, now - KEY_MS)
    older = frozenset(place for place, given in enumerate(ids) if kept[place] != given)
    return _Places(kept, [f"{NAMED}{name}" for name in names], older)


async def _begun(call: Call, like: Start, payloads: Sequence[Mapping[str, Any]], places: _Places) -> list[Started]:
    begun: dict[int, Started] = {}
    for place in sorted(places.older):
        repeated = await find_started(call, places.ids[place])
        if repeated is not None:
            await _own(call, places.ids[place], places.messages[place])
            begun[place] = repeated
    now, actor, action = call.services.clock.now(), call.actor.name, call.action
    path, playbook = like.path, like.playbook
    about = {"path": path, "playbook": playbook}
    new = {
        place: (
            execution_id,
            replace(like, message_id=places.messages[place], payload=payloads[place]),
            AuditEntry(now, actor, action, execution_id, about),
        )
        for place, execution_id in enumerate(places.ids)
        if place not in begun
    }
    call.skip_audit()  # each start has its own audit entry
    for place, row in (await _submitted(call, new, len(payloads))).items():
        begun[place] = (
            _rejected(row, path, playbook)
            if isinstance(row, LimitReached)
            else Started(execution_id=places.ids[place], status=str(row.get("status")), path=path, playbook=playbook)
        )
    return [begun[place] for place in range(len(payloads))]


def _rejected(reason: LimitReached, path: str, playbook: str) -> Started:
    error = failure("unknown", str(reason), "LIMIT_REACHED")
    return Started(execution_id="", status=_REJECTED, path=path, playbook=playbook, error=error)


async def _submitted(
    call: Call, left: dict[int, tuple[str, Start, AuditEntry]], count: int
) -> dict[int, Mapping[str, Any] | LimitReached]:
    """Submit starts; return the row of each, or the limit that rejected it.

    Raises LimitReached if that is each execution of the request.
    """
    rows: dict[int, Mapping[str, Any] | LimitReached] = {}
    asked, trouble = len(left), None
    for _ in range(_TRIES if left else 0):
        answers = await call.services.control.sequencer.submit_all(list(left.values()))
        for place, answer in zip(left, answers, strict=True):
            if isinstance(answer, Answer):
                rows[place] = answer.row
            elif isinstance(answer, LimitReached):
                rows[place] = answer
            elif not isinstance(answer, Conflict):
                trouble = trouble or answer
        left = {place: left[place] for place in left if place not in rows}
        if trouble is not None or not left:
            break
        await asyncio.sleep(_AGAIN_S)
    rejected = [row for row in rows.values() if isinstance(row, LimitReached)]
    begun = count - asked + len(rows) - len(rejected)
    if left:
        changing = f"Execution {next(iter(left.values()))[0]} is being changed by another server. Try again."
        raise _halfway(trouble or Conflict(changing), begun, count)
    if rejected and not begun:
        raise rejected[0]
    return rows


def _halfway(trouble: Exception, begun: int, count: int) -> Exception:
    if not begun:
        return trouble
    problem, _ = problem_of(trouble)
    return Refusal(
        problem.status,
        problem.type.rpartition("#")[2],
        f"{begun} of {count} executions have started, then an error occurred: {problem.detail}",
        fix="Send the request again with the same Idempotency-Key; without one, list which have started.",
        retry_after_s=problem.retry_after_s,
    )


async def _own(call: Call, execution_id: str, message_id: str) -> None:
    """Check that the execution of a key was started by this message. Raises Conflict."""
    first = await call.services.store.read(execution_id, 0, 1)
    if first and not is_started_by(first[0], message_id):
        raise Conflict(f"The id reserved for this key, {execution_id}, belongs to another execution. Use another key.")


def _counted(begun: list[Started]) -> StartedMany:
    return StartedMany(executions=begun, counts=dict(Counter([one.status for one in begun])))
