"""Notifications: messages about executions that need a person.

Tested in tests/server/api/triggers/test_notifications.py.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from noetl.model.errors import InvalidInput, NoetlError
from noetl.ports.triggers import StoredTrigger
from noetl.server.api.triggers.verbs import TriggerNoun, add_changes, add_reads, new_trigger, refusing, store_of
from noetl.server.auth.stored_credential import open_credential
from noetl.server.background.reactions.notifications import KIND, spec_of, trial_message
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal
from noetl.triggers.notification import NotificationSpec, address_in, check, mail_problem
from noetl.wire.triggers.notifications import NotificationAsked, NotificationRow, NotificationRows, NotificationTested

_SPEC = NotificationSpec.__struct_fields__
_EXAMPLE = {
    "name": "team-a", "path": "team-a/*", "on": ["failed", "approval"], "channel": "slack", "credential": "team_a_slack",
}  # fmt: skip


async def row_of(_: Call, notification: StoredTrigger) -> NotificationRow:
    """Return a notification as callers see it."""
    known: dict[str, Any] = {"notification_id": notification.trigger_id}
    known |= {name: getattr(notification, name) for name in ("path", "created_at", "created_by", "paused", "owner")}
    try:
        spec = spec_of(notification)
    except InvalidInput as error:
        return NotificationRow(on=[], channel="", problem=str(error), **known)
    fields: dict[str, Any] = {name: getattr(spec, name) for name in _SPEC}
    fields |= {"on": list(spec.on), "to": list(spec.to)}
    return NotificationRow(**known, **fields)


async def _shown(call: Call, notification: StoredTrigger) -> NotificationRow:
    row = await row_of(call, notification)
    return row if row.problem else replace(row, problem=await _lack(call, spec_of(notification)))


async def _lack(call: Call, spec: NotificationSpec) -> str:
    """Return why messages cannot be sent with the credential, or an empty text."""
    name = spec.credential
    if not name:
        return ""
    try:
        _, data = await open_credential(call.services.team, call.services.vault, name)
    except KeyError:
        return f"There is no credential `{name}`."
    except NoetlError as error:
        return str(error)
    if spec.channel == "email":
        problem = mail_problem(data)
        return f"The credential `{name}` cannot send e-mail: {problem}." if problem else ""
    return "" if spec.url or address_in(data) else f"The credential `{name}` has no `url`."


noun = Noun("notifications", "Notifications: messages about executions that failed, wait or are late.")
NOTIFICATIONS = TriggerNoun(
    noun,
    "notification",
    KIND,
    store_of(KIND),
    row_of,
    NotificationRow,
    defined_in="notifications",
    undefined_by="without it",
)


@NOTIFICATIONS.creates("editor", _EXAMPLE, (409, 422))
async def create(call: Call, body: NotificationAsked) -> NotificationRow:
    """Create a notification for the executions of a path or a namespace."""
    fields = {name: getattr(body, name) for name in _SPEC}
    spec = NotificationSpec(**{**fields, "on": tuple(dict.fromkeys(body.on))})
    with refusing():
        check(spec)
    lack = await _lack(call, spec)
    if lack:
        fix = "Store the credential first: PUT /api/credentials/NAME."
        raise Refusal(422, "invalid-input", lack, where="$.credential", fix=fix)
    return await NOTIFICATIONS.add(call, new_trigger(call, KIND, body.name, body.path, spec, paused=body.paused))


add_reads(NOTIFICATIONS, NotificationRows, "Return a notification, and why it cannot be sent, if it cannot.", _shown)
add_changes(
    NOTIFICATIONS,
    pauses="Pause a notification: nothing that happens until it is resumed is sent.",
    resumes="Resume a paused notification.",
    removes="Delete a notification; messages that are in the outbox are still delivered.",
    remover="editor",
)


@noun.route(
    "POST",
    "/api/notifications/{notification_id}/test",
    "operator",
    status=201,
    act="notification.test",
    problems=(404,),
)
async def tested(call: Call, notification_id: str) -> NotificationTested:
    """Put a test message in the outbox, on the way of all others."""
    services = call.services
    found = await NOTIFICATIONS.find(call, notification_id)
    message = trial_message(found, services.public_url, services.clock.civil())
    await services.team.audit([call.act(notification_id)])
    return NotificationTested(number=await services.outbox.put(message, services.clock.now()))
