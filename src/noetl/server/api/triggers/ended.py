"""Triggers that start a playbook when executions of others end.

Tested in tests/server/api/triggers/test_ended_triggers.py.
"""

from __future__ import annotations

from noetl.model.errors import InvalidInput
from noetl.ports.triggers import StoredTrigger
from noetl.server.api.triggers.verbs import (
    TriggerNoun,
    add_changes,
    add_reads,
    find_playbook,
    new_trigger,
    refusing,
    store_of,
)
from noetl.server.background.reactions.ended_triggers import KIND, spec_of
from noetl.server.http.endpoint import Call, Noun
from noetl.triggers.ended import EndedSpec, check
from noetl.wire.triggers.ended import TriggerAsked, TriggerRow, TriggerRows

_EXAMPLE = {
    "name": "failures", "path": "examples/hello", "after": "etl/*", "status": ["failed"],
    "payload": {"which": "{{ execution.execution_id }}"},
}  # fmt: skip


async def row_of(_: Call, trigger: StoredTrigger) -> TriggerRow:
    """Return a trigger as callers see it."""
    names = ("trigger_id", "path", "paused", "version", "owner", "created_at", "created_by", "changed_at")
    known = {name: getattr(trigger, name) for name in names}
    try:
        spec = spec_of(trigger)
    except InvalidInput as error:
        return TriggerRow(after="", problem=str(error), **known)
    return TriggerRow(
        after=spec.path,
        status=list(spec.status),
        tags=list(spec.tags),
        payload=dict(spec.payload),
        **known,
    )


noun = Noun("triggers", "Triggers: playbooks that start when executions of others end.")
TRIGGERS = TriggerNoun(noun, "trigger", KIND, store_of(KIND), row_of, TriggerRow)


@TRIGGERS.creates("operator", _EXAMPLE)
async def create(call: Call, body: TriggerAsked) -> TriggerRow:
    """Create a trigger of a registered playbook."""
    spec = EndedSpec(body.after, tuple(dict.fromkeys(body.status)), body.tags, body.payload)
    with refusing(path="after"):
        check(spec, body.path)
    await find_playbook(call, body.path, body.version)
    made = new_trigger(call, KIND, body.name, body.path, spec, paused=body.paused, version=body.version)
    return await TRIGGERS.add(call, made)


add_reads(TRIGGERS, TriggerRows, "Return a trigger.")
add_changes(
    TRIGGERS,
    pauses="Pause a trigger: executions that end until it is resumed start nothing.",
    resumes="Resume a paused trigger.",
    removes="Delete a trigger; running executions continue.",
)
