"""Notifications: messages about executions that need a person.

Tested in tests/server/api/test_notifications.py.
"""

from __future__ import annotations

from typing import NoReturn

from msgspec import to_builtins

from noetl.model.errors import NoetlError
from noetl.ports.triggers import StoredTrigger
from noetl.schedules.spec import Problem
from noetl.server.auth.stored_credential import open_credential
from noetl.server.background.reactions.notifications import KIND, spec_of, trial_message
from noetl.server.http.endpoint import Call, Noun
from noetl.server.problems import Refusal, not_found
from noetl.triggers.notification import NotificationSpec, address_in, check, mail_problem
from noetl.wire.answers import Removed
from noetl.wire.notifications import (
    NotificationAsked,
    NotificationRow,
    NotificationRows,
    NotificationsQuery,
    NotificationTested,
)

_SPEC = NotificationSpec.__struct_fields__
_EXAMPLE = {
    "name": "team-a", "path": "team-a/*", "on": ["failed", "approval"], "channel": "slack", "credential": "team_a_slack",
}  # fmt: skip
noun = Noun("notifications", "Notifications: messages about executions that failed, wait or are late.")


@noun.route(
    "POST",
    "/api/notifications",
    "editor",
    status=201,
    act="notification.create",
    example=_EXAMPLE,
    problems=(409, 422),
)
async def create(call: Call, body: NotificationAsked) -> NotificationRow:
    """Create a notification for the executions of a path or a namespace."""
    now, by = call.services.clock.civil(), call.actor.name
    fields = {name: getattr(body, name) for name in _SPEC}
    spec = NotificationSpec(**{**fields, "on": tuple(dict.fromkeys(body.on))})
    try:
        check(spec)
    except Problem as problem:
        raise Refusal(422, "invalid-input", problem.what, where=f"$.{problem.field}", fix=problem.fix) from None
    lack = await _lack(call, spec)
    if lack:
        fix = "Store the credential first: PUT /api/credentials/NAME."
        raise Refusal(422, "invalid-input", lack, where="$.credential", fix=fix)
    made = StoredTrigger(
        KIND, body.name, body.path, to_builtins(spec), created_at=now, created_by=by, changed_at=now
    )  # fmt: skip
    if not await call.services.triggers.add(made, call.act(body.name, path=body.path)):
        fix = "Delete it, or choose another name."
        raise Refusal(409, "conflict", f"There is a notification `{body.name}`.", where="$.name", fix=fix)
    return row_of(made)


@noun.route("GET", "/api/notifications", "viewer", problems=(422,))
async def listed(call: Call, query: NotificationsQuery) -> NotificationRows:
    """List notifications by id."""
    found = await call.services.triggers.triggers(KIND, path=query.path, after=query.cursor, limit=query.limit)
    rows = [row_of(one) for one in found]
    return NotificationRows(notifications=rows, next=rows[-1].notification_id if len(rows) == query.limit else None)


@noun.route("GET", "/api/notifications/{notification_id}", "viewer", problems=(404,))
async def shown(call: Call, notification_id: str) -> NotificationRow:
    """Return a notification, and why it cannot be sent, if it cannot."""
    found = await _found(call, notification_id)
    return row_of(found, await _lack(call, spec_of(found)))


@noun.route("DELETE", "/api/notifications/{notification_id}", "editor", act="notification.delete", problems=(404,))
async def remove(call: Call, notification_id: str) -> Removed:
    """Delete a notification; messages that are in the outbox are still delivered."""
    if not await call.services.triggers.remove(KIND, notification_id, call.act(notification_id)):
        _missing(notification_id)
    return Removed(removed=1)


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
    found = await _found(call, notification_id)
    message = trial_message(found, services.public_url, services.clock.civil())
    await services.team.audit([call.act(notification_id)])
    return NotificationTested(number=await services.outbox.put(message, services.clock.now()))


def row_of(notification: StoredTrigger, problem: str = "") -> NotificationRow:
    """Return a notification as callers see it."""
    spec = spec_of(notification)
    return NotificationRow(
        notification_id=notification.trigger_id,
        path=notification.path,
        on=list(spec.on),
        channel=spec.channel,
        credential=spec.credential,
        url=spec.url,
        to=list(spec.to),
        sla=spec.sla,
        created_at=notification.created_at,
        created_by=notification.created_by,
        problem=problem,
    )


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


async def _found(call: Call, notification_id: str) -> StoredTrigger:
    found = await call.services.triggers.trigger(KIND, notification_id)
    return found if found is not None else _missing(notification_id)


def _missing(notification_id: str) -> NoReturn:
    raise not_found(f"No notification {notification_id}.", "GET /api/notifications lists the notifications.")
