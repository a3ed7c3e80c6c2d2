"""Pause, resume and follow triggers other than schedules.

Tested in tests/server/api/triggers/test_webhooks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.tree.playbook import OF_THE_START
from noetl.model.errors import Conflict
from noetl.ports import AuditEntry, EventLog
from noetl.ports.team import Audit
from noetl.ports.triggers import StoredTrigger, Triggers
from noetl.server.background.reactions.ended_triggers import KIND as ENDED
from noetl.server.background.reactions.notifications import KIND as NOTIFICATION
from noetl.server.background.subscriptions.feed import KIND as SUBSCRIPTION
from noetl.server.operations.schedules import trigger_prefix
from noetl.triggers.ended import EndedSpec
from noetl.triggers.notification import NotificationSpec
from noetl.triggers.stored import read_spec
from noetl.triggers.subscription import SubscriptionSpec
from noetl.triggers.webhook import WebhookSpec

_SPECS: Final[Mapping[str, type[Struct]]] = {
    "webhook": WebhookSpec,
    ENDED: EndedSpec,
    SUBSCRIPTION: SubscriptionSpec,
    NOTIFICATION: NotificationSpec,
}
KINDS: Final = tuple(_SPECS)
_TRIES: Final = 20
_MOST: Final = 10_000  # triggers of one playbook
Change = Callable[[StoredTrigger], StoredTrigger]


async def follow_playbook(triggers: Triggers, path: str, tree: Mapping[str, Any], by: str, now: int) -> None:
    """Make the stored triggers and notifications of a playbook its own; others stay."""
    every = wanted_triggers(path, tree)
    for kind in KINDS:
        wanted = {one.trigger_id: one for one in every if one.kind == kind}
        for old in await triggers.triggers(kind, owner=path, limit=_MOST):
            if old.trigger_id not in wanted:
                act = AuditEntry(now, by, f"{kind}.delete", old.trigger_id)
                await triggers.remove(kind, old.trigger_id, act)
        for one in wanted.values():
            await _put(triggers, one, by, now)


def wanted_triggers(path: str, tree: Mapping[str, Any]) -> list[StoredTrigger]:
    """Return the triggers and notifications of a playbook. Raises InvalidInput."""
    prefix = trigger_prefix(path)
    told = ({NOTIFICATION: one["name"], **_spec(one, "name")} for one in tree.get("notifications", ()))
    given: list[Mapping[str, Any]] = [*tree.get("triggers", ()), *told]
    found: list[StoredTrigger] = []
    for kind, one in ((kind, one) for one in given for kind in KINDS if kind in one):
        name, spec, target = f"{prefix}:{one[kind]}", _spec(one, kind), one.get("dispatch") or {}
        read_spec(spec, _SPECS[kind])
        start = (target.get("playbook", path), spec, target.get("version"), path, bool(one.get("paused")))
        found.append(StoredTrigger(kind, name, *start))
    return found


async def _put(triggers: Triggers, wanted: StoredTrigger, by: str, now: int) -> None:
    kind, name = wanted.kind, wanted.trigger_id
    old = await triggers.trigger(kind, name)
    if old is None:
        made = replace(wanted, created_at=now, created_by=by, changed_at=now)
        await triggers.add(made, AuditEntry(now, by, f"{kind}.create", name))
    elif (old.spec, old.path, old.version) != (wanted.spec, wanted.path, wanted.version):
        act = AuditEntry(now, by, f"{kind}.change", name)
        new = {"spec": wanted.spec, "path": wanted.path, "version": wanted.version, "changed_at": now}
        await apply(triggers, kind, name, lambda known: replace(known, **new), act)


def _spec(trigger: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {key: value for key, value in trigger.items() if key not in (kind, *OF_THE_START)}


async def skip_ends(triggers: Triggers, log: EventLog) -> None:
    """Pass over all events up to now: they start nothing, and notify of nothing."""
    for name in (ENDED, NOTIFICATION):
        for _ in range(_TRIES):
            _, revision = await triggers.position(name)
            if await triggers.advance(name, await log.writers(), revision):
                break
        else:
            raise Conflict("A server reads this store. Stop it, and try again.")


async def pause_subscriptions(triggers: Triggers, now: int) -> int:
    """Pause every subscription; return how many were not paused."""
    count, after = 0, None
    while page := await triggers.triggers(SUBSCRIPTION, after=after):
        after = page[-1].trigger_id
        for one in page:
            if not one.paused:
                await switch(triggers, SUBSCRIPTION, one.trigger_id, True, now)
                count += 1
    return count


async def list_within(
    triggers: Triggers, kind: str, path: str | None, after: str | None, limit: int, within: Sequence[str] | None
) -> list[StoredTrigger]:
    """List triggers by id, only those of playbooks in these namespaces."""
    found: list[StoredTrigger] = []
    while len(found) < limit:
        page = await triggers.triggers(kind, path=path, after=after, limit=limit)
        found += [one for one in page if within is None or one.path.startswith(tuple(within))]
        if len(page) < limit:
            break
        after = page[-1].trigger_id
    return found[:limit]


async def switch(
    triggers: Triggers, kind: str, trigger_id: str, paused: bool, now: int, act: Audit = None
) -> StoredTrigger | None:
    """Pause or resume a trigger; None if it is unknown. Raises Conflict."""
    return await apply(triggers, kind, trigger_id, lambda old: replace(old, paused=paused, changed_at=now), act)


async def apply(
    triggers: Triggers, kind: str, trigger_id: str, change: Change, act: Audit = None
) -> StoredTrigger | None:
    """Change a trigger; None if it is unknown. Raises Conflict."""
    for _ in range(_TRIES):
        old = await triggers.trigger(kind, trigger_id)
        if old is None:
            return None
        if await triggers.save(change(old), act):
            return change(old)
    raise Conflict(f"{kind.capitalize()} {trigger_id} is being changed by others. Try again.")
