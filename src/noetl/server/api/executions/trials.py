"""Trials of a text: all of it, up to a step, or one step with recorded inputs.

A trial is an execution with the tag `try`, which lists leave out. With `from`, it continues the history of an execution, so
what is recorded there is not made again. Tested in tests/server/api/test_trials.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from noetl.dsl.tree.pin import pinned, unpinned
from noetl.dsl.tree.playbook import Playbook
from noetl.dsl.tree.trial import changed_steps, cut_after, only, tasks_from
from noetl.engine.queries.execution_fork import first_run
from noetl.engine.queries.execution_fork import place as place_of
from noetl.engine.state.evolve import fold
from noetl.model.events import Event
from noetl.ports import AuditEntry
from noetl.server.auth.gate import refusal
from noetl.server.cache.ids import key_name, new_execution
from noetl.server.feeds.reader import known_id
from noetl.server.http.endpoint import Call, Noun
from noetl.server.http.playbook_check import Checked, check_playbook
from noetl.server.http.start_request import start
from noetl.server.operations.forks import fork_from
from noetl.server.problems import Refusal
from noetl.wire.answers import Trial, TrialTask
from noetl.wire.requests import TRIAL, Execute, TrialAsked

_TEXT = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: hello, path: examples/hello}
workflow:
  - step: hello
    tool: {kind: noop, result: hello}
"""
noun = Noun("try", "Trials of a playbook's text.")


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a trial begins: a step, and the history before it if there is any."""

    step: str
    seq: int = 0  # 0: it begins anew


@noun.route(
    "POST",
    "/api/try",
    "operator",
    status=201,
    act="execution.try",
    example={"content": _TEXT, "payload": {"name": "Ada"}, "until": "hello"},
    problems=(400, 404, 409, 413, 422, 503),
    of="path",
)
async def trial(call: Call, body: TrialAsked) -> Trial:
    """Run a text that is not registered: all of it, up to a step, or one step."""
    if body.source is not None:
        await call.find_execution(known_id(body.source))
        await call.services.reader.row(body.source)
    made = await check_playbook(call.services, body.content)
    await _check_rights(call, made, body)
    whole = unpinned(made.canonical)
    cut = _cut(whole, body)
    origin = await _origin(call, whole, body)
    canonical, content_hash = pinned(cut)
    tasks = [TrialTask(step=step, label=task.label, kind=task.kind) for step, task in tasks_from(cut, origin.step)]
    source = body.source if origin.seq else None
    if body.dry_run:
        call.skip_audit()
        return Trial(execution_id=None, playbook=content_hash, source=source, seq=origin.seq, tasks=tasks)
    if await call.services.store.canonical(content_hash) is None:
        await _register(call, made.content, canonical, content_hash)
    execution_id = await _begin(call, body, origin, content_hash)
    return Trial(execution_id=execution_id, playbook=content_hash, source=source, seq=origin.seq, tasks=tasks)


async def _check_rights(call: Call, made: Checked, body: TrialAsked) -> None:
    if not call.sees(made.path):
        raise refusal(call.actor, "operator")
    if await call.services.store.canonical(made.playbook) is None or (body.source and body.payload):
        call.require("editor")  # as a start by content, and as a fork with another workload


async def _register(call: Call, content: bytes, canonical: bytes, content_hash: str) -> None:
    now, place = call.services.clock.now(), f"by-content/{content_hash[:16]}"
    act = AuditEntry(now, call.actor.name, "playbook.register", place, {"playbook": content_hash})
    await call.services.store.register(place, content, canonical, content_hash, now, act)


def _cut(playbook: Playbook, body: TrialAsked) -> Playbook:
    """Return what the trial runs of a playbook. Raises Refusal."""
    if body.step is not None and body.until is not None:
        raise Refusal(422, "invalid-input", "A trial has `step` or `until`.", where="$.until", fix="Send one of them.")
    name = body.step or body.until
    if name is None:
        return playbook
    if name not in {step.name for step in playbook.workflow}:
        detail = f"The playbook has no step `{name}`."
        raise Refusal(422, "invalid-input", detail, where=f"$.{'step' if body.step else 'until'}", fix="Name one.")
    return only(playbook, name) if body.step else cut_after(playbook, name)


async def _origin(call: Call, whole: Playbook, body: TrialAsked) -> _Origin:
    """Find where a trial begins. Raises Refusal if the history has no such place."""
    if body.source is None:
        return _Origin(body.step or str(whole.executor.setting("entry_step") or whole.workflow[0].name))
    events = await call.services.store.read(known_id(body.source))
    request = events[0].payload
    if request.get("path") != whole.path:
        raise _unfit(f"Execution {body.source} is one of `{request.get('path')}`, not of `{whole.path}`.")
    if body.step is not None:
        step, seq = body.step, place_of(events, body.step)
        _check_alone(events, seq, step)
    else:
        before = unpinned(await call.services.store.canonical(str(request.get("playbook"))) or b"{}")
        found = first_run(events, changed_steps(before, whole))
        if found is None:
            raise _unfit(f"No step that ran in execution {body.source} has changed.")
        step, seq = found
    return _Origin(step, seq)


def _check_alone(events: Sequence[Event], seq: int, step: str) -> None:
    """Check that nothing else would run with a step. Raises Refusal."""
    state = fold(events[0].execution_id, events[:seq])
    others = sorted({run.step for run in state.runs.values()} - {step})
    if others:
        names = ", ".join(f"`{name}`" for name in others)
        raise _unfit(f"When `{step}` began, other steps were running and would run again: {names}.")


def _unfit(detail: str) -> Refusal:
    return Refusal(409, "conflict", detail, where="$.from", fix="Omit `from`, or name another execution.")


async def _begin(call: Call, body: TrialAsked, origin: _Origin, content_hash: str) -> str:
    services = call.services
    if not origin.seq:
        key = call.idempotency_key()
        wanted = Execute(playbook=content_hash, payload=body.payload, tags=(TRIAL,))
        return (await start(call, wanted, key_name(call.actor.name, key) if key else "")).execution_id
    now = services.clock.now()
    execution_id = str(new_execution(now))
    await fork_from(
        services.store,
        services.control,
        str(body.source),
        execution_id,
        str(origin.seq),
        ctx={},
        workload=body.payload,
        at=now,
        playbook=content_hash,
        tags=(TRIAL,),
        act=call.act(execution_id, source=body.source, start=origin.step),
    )
    return execution_id
