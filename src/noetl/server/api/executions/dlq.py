"""Dead letters: list, group by cause, show, replay and discard.

A replay is one message per execution, so it is one commit with its audit entry. Tested in
tests/server/api/test_dlq.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from noetl.model.letters import PENDING, STATUSES, DeadLetter
from noetl.model.messages import Start
from noetl.ports.letters import LetterSelection
from noetl.server.auth.gate import reach
from noetl.server.auth.namespaces import Reach
from noetl.server.cache.ids import key_name
from noetl.server.http.endpoint import Call, Noun
from noetl.server.operations.dead_letters import (
    Note,
    discard,
    first_letters,
    pending,
    preview,
    ready,
    replay,
    was_applied,
)
from noetl.server.operations.poisoned_messages import is_patchable, patched, prepared, restart, split
from noetl.server.problems import Refusal
from noetl.server.processes.render_apart import render_apart
from noetl.wire.letters import (
    Discarded,
    Letter,
    LetterDiscard,
    LetterGroup,
    LetterGroups,
    LetterPreview,
    LetterReplay,
    LetterRow,
    Letters,
    LettersDiscard,
    LettersQuery,
    LettersReplay,
    Replayed,
)

_SHOWN = 100  # letters of a dry run that are previewed
_NAMED = 1_000
noun = Noun("dlq", "Dead letters: work that failed permanently.")


@noun.route("GET", "/api/dlq", "viewer", problems=(400,), of="path")
async def listed(call: Call, query: LettersQuery) -> Letters:
    """List dead letters, the most recent failure first."""
    if query.cursor is not None and call.reach is not None and not await _is_seen(call, query.cursor):
        return Letters(letters=[], next=None)
    found = await call.services.store.letters(_selection(call, query, query.cursor))
    rows = [_row(letter) for letter in found]
    return Letters(letters=rows, next=rows[-1].message_id if len(rows) == query.limit else None)


@noun.route("GET", "/api/dlq/groups", "viewer", problems=(400,), of="path")
async def grouped(call: Call, query: LettersQuery) -> LetterGroups:
    """List dead letters grouped by cause, the largest group first."""
    found = await call.services.store.letter_groups(_selection(call, query))
    return LetterGroups(groups=[LetterGroup(**row) for row in found])


@noun.route("GET", "/api/dlq/{message_id}", "viewer", problems=(404,), of="path")
async def detail(call: Call, message_id: str) -> Letter:
    """Return a dead letter in detail; secrets are masked."""
    letter = await _letter(call, message_id)
    return Letter(**{name: getattr(letter, name) for name in Letter.__struct_fields__})


@noun.route(
    "POST",
    "/api/dlq/replay",
    "operator",
    act="dlq.replay",
    example={"group": "3f6b0c9a1d2e", "patch": {"spec.url": "https://example.org/new"}, "dry_run": True},
    problems=(400, 409, 422),
    of="path",
)
async def replay_many(call: Call, body: LettersReplay) -> Replayed:
    """Replay all matching dead letters; idempotent with an `Idempotency-Key`."""
    if body.patch:
        call.require("editor")
    within = reach(call.actor, "editor") if body.patch else call.reach
    letters = await pending(call.services.store, _chosen(body, within))
    name, count = _name(call), len(letters)
    if not body.dry_run:
        name, letters, count = await _once(call, "replay", body, letters)
    done = await _replay(call, letters, body, body.group or body.execution_id or body.path or "dlq", name)
    return replace(done, count=count)


@noun.route(
    "POST",
    "/api/dlq/{message_id}/replay",
    "operator",
    act="dlq.replay",
    example={"patch": {"spec.url": "https://example.org/new"}},
    problems=(400, 404, 409, 422),
    of="path",
)
async def replay_one(call: Call, message_id: str, body: LetterReplay) -> Replayed:
    """Replay a dead letter; idempotent with an `Idempotency-Key`."""
    name = _name(call)
    return await _replay(call, [await _waiting(call, message_id, "replay", name)], body, message_id, name)


@noun.route(
    "POST",
    "/api/dlq/discard",
    "operator",
    act="dlq.discard",
    example={"group": "3f6b0c9a1d2e", "reason": "rows of a test"},
    problems=(400, 422),
    of="path",
)
async def discard_many(call: Call, body: LettersDiscard) -> Discarded:
    """Discard all matching dead letters; idempotent with an `Idempotency-Key`."""
    letters = await pending(call.services.store, _chosen(body, call.reach))
    name, letters, count = await _once(call, "discard", body, letters)
    done = await _discard(call, letters, body.reason, body.group or body.execution_id or body.path or "dlq", name)
    return replace(done, count=count)


@noun.route(
    "POST",
    "/api/dlq/{message_id}/discard",
    "operator",
    act="dlq.discard",
    example={"reason": "the row was deleted"},
    problems=(404, 409, 422),
    of="path",
)
async def discard_one(call: Call, message_id: str, body: LetterDiscard) -> Discarded:
    """Discard a dead letter: its work is not done."""
    name = _name(call)
    return await _discard(call, [await _waiting(call, message_id, "discard", name)], body.reason, message_id, name)


async def _once(
    call: Call, verb: str, body: LettersReplay | LettersDiscard, letters: list[DeadLetter]
) -> tuple[str, list[DeadLetter], int]:
    name = _name(call)
    if not call.idempotency_key():
        return name, letters, len(letters)
    asked = msgspec.json.encode(body, order="deterministic").decode()
    name = f"{verb}:{key_name(name, asked)}"
    return name, *await first_letters(call.services.team, name, letters, call.services.clock.now())


async def _replay(call: Call, letters: list[DeadLetter], body: LetterReplay, entity: str, name: str) -> Replayed:
    services = call.services
    if body.patch:
        call.require("editor")  # it changes what runs
    own, messages = split(letters)
    unfit = next((path for path in body.patch if not is_patchable(path)), None)
    if messages and unfit is not None:
        what = f"Dead letter {messages[0].message_id} is a message of a subscription, which has no `{unfit[:80]}`."
        fix = (
            "Patch its `data`, such as `data.id`; or correct the `payload` of the subscription, and replay it as it is."
        )
        raise Refusal(422, "invalid-input", what, where="$.patch", fix=fix)
    found = await ready(services.store, services.control, own, body.patch, services.kinds)
    starts = [(letter, await _prepared(call, letter, body.patch)) for letter in messages]
    ids = [letter.message_id for letter in letters][:_NAMED]
    if body.dry_run:
        shown = [
            LetterPreview(
                message_id=one.message_id,
                step_id=one.step_id,
                loop_index=one.loop_index,
                payload=preview(one, body.patch),
            )
            for one in letters[:_SHOWN]
        ]
        return Replayed(count=len(letters), letters=ids, dry_run=True, preview=shown)
    note = _note(call, entity, patch=dict(body.patch))
    by = call.actor.name
    count = await replay(services.control, found, body.patch, by=by, name=name, note=note)
    for letter, start in starts:
        act = note(letter.execution_id, 1)
        await restart(services.control, services.store, letter, start, act, by)
    return Replayed(count=count + len(starts), letters=ids)


async def _prepared(call: Call, letter: DeadLetter, patch: Mapping[str, Any]) -> Start:
    services = call.services

    async def render(data: Any, scope: Mapping[str, Any]) -> Any:
        return await render_apart(services.side, data, scope, services.clock.now(), services.bounds.check_s)

    most = services.bounds.http.delivery_bytes
    return await prepared(services.store, services.triggers, render, patched(letter, patch), most)


async def _discard(call: Call, letters: list[DeadLetter], reason: str, entity: str, name: str) -> Discarded:
    note = _note(call, entity, reason=reason)
    count = await discard(call.services.control, letters, reason, by=call.actor.name, name=name, note=note)
    return Discarded(count=count, letters=[letter.message_id for letter in letters][:_NAMED])


def _note(call: Call, entity: str, **detail: Any) -> Note:
    return lambda execution_id, count: call.act(entity, execution_id=execution_id, letters=count, **detail)


def _name(call: Call) -> str:
    key = call.idempotency_key()
    return f"{call.actor.name}:{key}" if key else uuid4().hex


async def _letter(call: Call, message_id: str) -> DeadLetter:
    found = await call.services.store.letter(message_id)
    if found is None or not call.sees(found.path):
        raise Refusal(
            404, "not-found", f"No dead letter {message_id[:80]!r}.", fix="`GET /api/dlq` lists the dead letters."
        )
    return found


async def _is_seen(call: Call, message_id: str) -> bool:
    """Return whether a letter exists for the caller."""
    found = await call.services.store.letter(message_id)
    return found is not None and call.sees(found.path)


async def _waiting(call: Call, message_id: str, verb: str, name: str) -> DeadLetter:
    """Return a letter that is pending, or done by this request. Raises Refusal."""
    letter = await _letter(call, message_id)
    if letter.status == PENDING or await was_applied(call.services.store, verb, name, letter):
        return letter
    detail = f"Dead letter {message_id} is {letter.status}; only a pending one can be replayed or discarded."
    raise Refusal(409, "conflict", detail, fix="`GET /api/dlq` lists pending dead letters.")


def _row(letter: DeadLetter) -> LetterRow:
    return LetterRow(**{name: getattr(letter, name) for name in LetterRow.__struct_fields__})


def _selection(call: Call, query: LettersQuery, before: str | None = None) -> LetterSelection:
    wrong = [status for status in query.status if status not in (*STATUSES, "all")]
    if wrong:
        raise Refusal(
            400,
            "invalid-input",
            f"Unknown status {wrong[0][:40]!r}.",
            where="query status",
            fix=f"Use one of {', '.join((*STATUSES, 'all'))}.",
        )
    return LetterSelection(
        status=() if "all" in query.status else tuple(query.status),
        execution_id=query.execution_id,
        path=query.path,
        step_id=query.step,
        tool_kind=query.kind,
        fingerprint=query.group,
        before=before,
        limit=query.limit,
        within=call.reach,
    )


def _chosen(body: LettersReplay | LettersDiscard, within: Reach) -> LetterSelection:
    asked = (body.group, body.execution_id, body.path, body.step, body.kind)
    if not body.all and not any(asked):
        raise Refusal(
            422,
            "invalid-input",
            "The request does not select any dead letters.",
            where="$",
            fix='Send a `group`, an `execution_id`, a `path`, a `step` or a `kind`; or `"all": true`.',
        )
    return LetterSelection(
        execution_id=body.execution_id,
        path=body.path,
        step_id=body.step,
        tool_kind=body.kind,
        fingerprint=body.group,
        within=within,
    )
