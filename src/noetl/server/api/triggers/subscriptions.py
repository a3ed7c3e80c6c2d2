"""Subscriptions: sources whose messages start playbooks, and how far each got.

Tested in tests/server/api/triggers/test_subscriptions.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from noetl.model.errors import InvalidInput, NoetlError
from noetl.ports.triggers import Message, StoredTrigger
from noetl.server.api.triggers.verbs import (
    TriggerNoun,
    add_changes,
    add_reads,
    find_playbook,
    new_trigger,
    refusing,
    store_of,
)
from noetl.server.background.subscriptions.feed import KIND
from noetl.server.background.subscriptions.poller import payload_of
from noetl.server.http.endpoint import Call, Noun
from noetl.server.processes.render_apart import render_apart
from noetl.triggers.stored import read_spec
from noetl.triggers.subscription import SubscriptionSpec, check, described, state_id
from noetl.wire.triggers.subscriptions import (
    MessagePreview,
    SubscriptionAsked,
    SubscriptionRow,
    SubscriptionRows,
    SubscriptionTested,
)

_SPEC = SubscriptionSpec.__struct_fields__
_EXAMPLE = {
    "name": "orders", "path": "examples/hello", "source": "table", "auth": "orders_db", "table": "public.orders", "key": "id",
    "payload": {"who": "{{ message.data.customer }}"},
}  # fmt: skip
_SHOWN_AS: Final = {"key": "after"}  # in a position: a value under the name `key` would be masked as a secret
_SHOWN: Final = 5  # messages of a test
_TEST_S: Final = 20.0


async def row_of(call: Call, trigger: StoredTrigger) -> SubscriptionRow:
    """Return a subscription as callers see it."""
    names = ("path", "version", "owner", "paused", "created_at", "created_by", "changed_at")
    known: dict[str, Any] = {name: getattr(trigger, name) for name in names}
    known |= {"subscription_id": trigger.trigger_id, "spec": dict(trigger.spec)}
    try:
        spec = spec_of(trigger)
    except InvalidInput as error:
        return SubscriptionRow(source=str(trigger.spec.get("source", "")), reads="", error=str(error), **known)
    name = state_id(trigger.trigger_id, trigger.created_at, spec)
    progress = await call.services.subscriptions.progress(name)
    noted = ("lag", "polled_at", "error", "failures", "next_at")
    return SubscriptionRow(
        source=spec.source,
        reads=described(spec),
        position={_SHOWN_AS.get(name, name): value for name, value in progress.position.items()},
        **{name: getattr(progress, name) for name in ("received", "poisoned", "last_message", "last_at")},
        **{name: progress.status[name] for name in noted if name in progress.status},
        **known,
    )


def spec_of(trigger: StoredTrigger) -> SubscriptionSpec:
    """Return what a stored subscription holds. Raises InvalidInput."""
    return read_spec(trigger.spec, SubscriptionSpec)


noun = Noun("subscriptions", "Subscriptions: sources whose messages start playbooks.")
SUBSCRIPTIONS = TriggerNoun(noun, "subscription", KIND, store_of(KIND), row_of, SubscriptionRow, of="path")


@SUBSCRIPTIONS.creates("editor", _EXAMPLE)
async def create(call: Call, body: SubscriptionAsked) -> SubscriptionRow:
    """Create a subscription of a registered playbook."""
    spec = SubscriptionSpec(**{name: getattr(body, name) for name in _SPEC})
    with refusing():
        check(spec)
    await find_playbook(call, body.path, body.version)
    made = new_trigger(call, KIND, body.name, body.path, spec, paused=body.paused, version=body.version)
    return await SUBSCRIPTIONS.add(call, made)


add_reads(SUBSCRIPTIONS, SubscriptionRows, "Return a subscription: its position, lag, last message and last error.")
add_changes(
    SUBSCRIPTIONS,
    pauses="Pause a subscription: its source is not polled until it is resumed.",
    resumes="Resume a paused subscription where it was.",
    removes="Delete a subscription and its position; running executions continue.",
)


@noun.route(
    "POST",
    "/api/subscriptions/{subscription_id}/test",
    "operator",
    act="subscription.test",
    problems=(404,),
    of="path",
)
async def tested(call: Call, subscription_id: str) -> SubscriptionTested:
    """Poll the source once and return what it offers; nothing starts or moves."""
    found = await SUBSCRIPTIONS.find(call, subscription_id)
    await call.services.team.audit([call.act(subscription_id)])
    try:
        async with asyncio.timeout(_TEST_S):
            return await _tested(call, found)
    except TimeoutError:
        return SubscriptionTested(ok=False, error=f"The source did not answer within {_TEST_S:g} seconds.")
    except NoetlError as error:
        return SubscriptionTested(ok=False, error=str(error))


async def _tested(call: Call, found: StoredTrigger) -> SubscriptionTested:
    services, spec = call.services, spec_of(found)
    name = state_id(found.trigger_id, found.created_at, spec)
    source = await services.open_source(spec)

    async def known(ids: Sequence[str]) -> set[str]:
        return await services.subscriptions.known(name, ids, services.clock.now())

    try:
        page = await source.poll((await services.subscriptions.progress(name)).position, _SHOWN, known)
    finally:
        await source.close()
    return SubscriptionTested(
        ok=True, messages=[await _preview(call, spec, one) for one in page.messages], lag=page.lag
    )


async def _preview(call: Call, spec: SubscriptionSpec, message: Message) -> MessagePreview:
    services = call.services

    async def render(data: Any, scope: Mapping[str, Any]) -> Any:
        return await render_apart(services.side, data, scope, services.clock.now(), services.bounds.check_s)

    problem, payload = message.problem, {}
    try:
        if not problem:
            payload = await payload_of(spec, message, render, services.bounds.http.delivery_bytes)
    except InvalidInput as error:
        problem = str(error)
    return MessagePreview(message_id=message.message_id, payload=payload, problem=problem)
