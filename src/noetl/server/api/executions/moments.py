"""Executions at any of their events: tracks and moments.

Tested in tests/server/api/test_moments.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from starlette.responses import Response

from noetl.engine.decision.builder import status_of
from noetl.engine.plan.plan import Plan
from noetl.engine.queries.moment import STATES, open_meetings
from noetl.engine.queries.track import Track
from noetl.engine.queries.view import changed, no_event, shortened
from noetl.engine.state.evolve import evolve
from noetl.engine.state.execution import Execution, Token, checksum
from noetl.masking.readers import ReaderMask
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.server.cache.track_rows import MANY, packed, rows
from noetl.server.http.endpoint import JSON, Call, Noun
from noetl.server.http.sse import stream_parts
from noetl.wire.screens.moments import (
    MomentAnswer,
    MomentChange,
    MomentQuery,
    MomentToken,
    TrackPart,
    TrackQuery,
)

_MOST: Final = 500  # tokens, keys of ctx and changes of a moment, each
_FOR_EVER: Final = {"Cache-Control": "private, max-age=31536000, immutable"}
_ALWAYS_NEW: Final = frozenset(("seq", "at"))  # every event changes them
noun = Noun("moments", "Executions at any of their events, for time travel.")


@noun.route("GET", "/api/executions/{execution_id}/track", "viewer", problems=(404,), of="execution", is_plain=True)
async def track(call: Call, execution_id: str, query: TrackQuery) -> TrackPart:
    """Return what changed on the screen of an execution after an event, by event."""
    await call.services.reader.row(execution_id)
    live = await call.services.tracks.get(execution_id)
    return await part_of(live.track, query.after, call.services.mask)


@noun.route(
    "GET",
    "/api/executions/{execution_id}/track/stream",
    "viewer",
    gives="text/event-stream",
    problems=(400, 404, 503),
    of="execution",
)
async def follow(call: Call, execution_id: str, query: TrackQuery) -> Response:
    """Follow the track of an execution; each message is a part, its id the last event."""
    await call.services.reader.row(execution_id)
    live = await call.services.tracks.get(execution_id)

    async def part(after: int) -> tuple[int, bytes]:
        made = await part_of(await live.advance(), after, call.services.mask)
        return made.seq, msgspec.json.encode(made)

    return await stream_parts(call, execution_id, query.after, part)


@noun.route(
    "GET",
    "/api/executions/{execution_id}/moment",
    "viewer",
    problems=(400, 404),
    of="execution",
    returns=MomentAnswer,
)
async def moment(call: Call, execution_id: str, query: MomentQuery) -> Response:
    """Return an execution after any event, and what the event changed."""
    services = call.services
    last = int((await services.reader.row(execution_id))["last_seq"])
    seq = last if query.seq is None else query.seq
    if seq > last:
        raise no_event(seq, last)
    replay = await services.checkpoints.replay(execution_id, max(0, seq - 1))
    event = (await services.store.read(execution_id, seq - 1, 1))[0] if seq else None
    plan = await _plan(call, replay.state.playbook) if replay.state.tokens else None
    answer = await asyncio.to_thread(_moment, plan, replay.state, event, services.mask)
    headers = {} if query.seq is None else _FOR_EVER
    return Response(await services.mask.answer(answer), 200, headers, JSON)


async def _plan(call: Call, playbook: str) -> Plan | None:
    try:
        return await call.services.control.plan(playbook)
    except InvalidInput:  # its playbook is gone: no token is known to join
        return None


async def part_of(track: Track, after: int, mask: ReaderMask) -> TrackPart:
    """Return the part of a track after an event.

    Only the step-runs are masked: the rest is numbers, under names of steps that may look like those of secrets.
    """
    part, spans = _part_of(track, after), track.spans_after(after)
    if len(spans) <= MANY:
        runs: Any = msgspec.Raw(await mask.answer(rows(spans)))
        return msgspec.structs.replace(part, runs=runs)
    others, columns = await asyncio.to_thread(packed, spans)
    runs = msgspec.Raw(await mask.answer(others))
    plain: Any = msgspec.Raw(await mask.answer(columns))
    return msgspec.structs.replace(part, runs=runs, plain=plain)


def _part_of(track: Track, after: int) -> TrackPart:
    """Return a part without its step-runs."""
    return TrackPart(
        after=after,
        seq=track.seq,
        t0=track.t0,
        head_at=track.head_at,
        every=track.every,
        times=track.times_after(after),
        runs=[],
        plain=None,
        dropped=track.dropped,
        series=track.marks_after(after),
        thinned=sorted(track.thinned),
        states=list(STATES),
    )


def _moment(plan: Plan | None, state: Execution, event: Event | None, mask: ReaderMask) -> MomentAnswer:
    """Apply an event to the state before it; return what is there and what changed."""
    before = msgspec.to_builtins(state, str_keys=True)
    if event is not None:
        evolve(state, event)
    after = msgspec.to_builtins(state, str_keys=True)
    changes = [one for one in changed(before, after) if one["path"] not in _ALWAYS_NEW]
    counts = {"tokens": len(state.tokens), "ctx": len(state.ctx), "changes": len(changes)}
    joining = {token.token_id for meeting in open_meetings(plan, state) for token in meeting.tokens}
    shown: Iterable[Mapping[str, Any]] = mask.data(changes[:_MOST])
    return MomentAnswer(
        seq=state.seq,
        event=None if event is None else event.event_type,
        at=None if event is None else event.timestamp,
        status=status_of(state),
        checksum=checksum(state),
        tokens=[_token(token, joining) for token in list(state.tokens.values())[:_MOST]],
        ctx={key: shortened(value) for key, value in mask.data(dict(list(after["ctx"].items())[:_MOST])).items()},
        changes=[MomentChange(**{name: shortened(value) for name, value in one.items()}) for one in shown],
        left_out={name: count - _MOST for name, count in counts.items() if count > _MOST},
    )


def _token(token: Token, joining: set[str]) -> MomentToken:
    state = "parked" if token.parked else "joining" if token.token_id in joining else "ready"
    return MomentToken(token=token.token_id, step=token.step, state=state)
