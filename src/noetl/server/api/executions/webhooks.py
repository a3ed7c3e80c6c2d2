"""Webhooks, and the route that receives their deliveries.

Tested in tests/server/api/test_webhooks.py.
"""

from __future__ import annotations

import logging
from typing import Any, Final, NoReturn
from urllib.parse import quote
from uuid import uuid4

from msgspec import convert, to_builtins
from msgspec.structs import replace

from noetl.model.errors import CredentialUnavailable, InvalidInput, NoetlError
from noetl.ports.triggers import StoredTrigger
from noetl.schedules.spec import Problem
from noetl.server.auth.gate import Actor
from noetl.server.cache.catalog_lookup import similar_path
from noetl.server.cache.ids import key_name
from noetl.server.http.delivery import (
    Delivery,
    Refused,
    authenticate,
    mapped,
    media_type,
    not_ready,
    parse,
    scope_of,
    shared_secret,
)
from noetl.server.http.endpoint import Call, Noun, address_of
from noetl.server.http.limits import read_body
from noetl.server.http.start_request import start
from noetl.server.operations.triggers import Change, apply
from noetl.server.problems import Refusal, not_found
from noetl.triggers.signatures import signed_headers
from noetl.triggers.webhook import WebhookSpec, check
from noetl.wire.answers import Removed
from noetl.wire.requests import Execute
from noetl.wire.webhooks import Delivered, DeliveryAsked, WebhookAsked, WebhookRow, WebhookRows, WebhooksQuery

KIND: Final = "webhook"
_SPEC = WebhookSpec.__struct_fields__
_EXAMPLE = {
    "name": "push", "path": "examples/hello", "auth": "github", "credential": "github_webhook",
    "payload": {"who": "{{ body.sender.login }}"},
}  # fmt: skip
_log = logging.getLogger(__name__)
noun = Noun("webhooks", "Webhooks: endpoints that start playbooks, and their deliveries.")


@noun.route(
    "POST",
    "/api/webhooks",
    "operator",
    status=201,
    act="webhook.create",
    example=_EXAMPLE,
    problems=(404, 409, 422),
)
async def create(call: Call, body: WebhookAsked) -> WebhookRow:
    """Create a webhook of a registered playbook."""
    now, by = call.services.clock.civil(), call.actor.name
    spec = WebhookSpec(**{name: getattr(body, name) for name in _SPEC})
    await _check(call, spec, body)
    made = StoredTrigger(
        KIND, body.name, body.path, to_builtins(spec), body.version, paused=body.paused,
        created_at=now, created_by=by, changed_at=now,
    )  # fmt: skip
    if not await call.services.triggers.add(made, call.act(body.name, path=body.path)):
        fix = "Delete it, or choose another name."
        raise Refusal(409, "conflict", f"There is a webhook `{body.name}`.", where="$.name", fix=fix)
    return row_of(made)


@noun.route("GET", "/api/webhooks", "viewer", problems=(422,))
async def listed(call: Call, query: WebhooksQuery) -> WebhookRows:
    """List webhooks by id."""
    found = await call.services.triggers.triggers(KIND, path=query.path, after=query.cursor, limit=query.limit)
    rows = [row_of(one) for one in found]
    return WebhookRows(webhooks=rows, next=rows[-1].webhook_id if len(rows) == query.limit else None)


@noun.route("GET", "/api/webhooks/{webhook_id}", "viewer", problems=(404,))
async def shown(call: Call, webhook_id: str) -> WebhookRow:
    """Return a webhook, and why it refuses deliveries, if it does."""
    found = await _found(call, webhook_id)
    return row_of(found, await not_ready(call.services, spec_of(found)))


@noun.route("POST", "/api/webhooks/{webhook_id}/pause", "operator", act="webhook.pause", problems=(404,))
async def pause(call: Call, webhook_id: str) -> WebhookRow:
    """Pause a webhook: deliveries are refused until it is resumed."""
    now = call.services.clock.civil()
    return await _apply(call, webhook_id, lambda old: replace(old, paused=True, changed_at=now))


@noun.route("POST", "/api/webhooks/{webhook_id}/resume", "operator", act="webhook.resume", problems=(404,))
async def resume(call: Call, webhook_id: str) -> WebhookRow:
    """Resume a paused webhook."""
    now = call.services.clock.civil()
    return await _apply(call, webhook_id, lambda old: replace(old, paused=False, changed_at=now))


@noun.route("DELETE", "/api/webhooks/{webhook_id}", "operator", act="webhook.delete", problems=(404, 409))
async def remove(call: Call, webhook_id: str) -> Removed:
    """Delete a webhook; running executions continue."""
    found = await _found(call, webhook_id)
    if found.owner:
        detail = f"`triggers` of the playbook `{found.owner}` define this webhook."
        fix = "Register a version of the playbook with other triggers, or pause the webhook."
        raise Refusal(409, "conflict", detail, fix=fix)
    if not await call.services.triggers.remove(KIND, webhook_id, call.act(webhook_id)):
        _missing(webhook_id)
    return Removed(removed=1)


@noun.route(
    "POST",
    "/api/webhooks/{webhook_id}/test",
    "operator",
    status=201,
    act="webhook.test",
    example={"body": '{"n": 1}', "content_type": "application/json"},
    problems=(401, 404, 409, 413, 415, 422, 503),
)
async def tested(call: Call, webhook_id: str, body: DeliveryAsked) -> Delivered:
    """Sign a delivery with the webhook's secret, and receive it: a real start."""
    found = await _found(call, webhook_id)
    spec, now, raw = spec_of(found), call.services.clock.civil(), _bytes(body.body)
    headers = {b"content-type": _bytes(body.content_type), b"user-agent": b"noetl-webhook-test"}
    if spec.auth == "github":
        headers[spec.delivery_header.encode()] = f"test-{uuid4()}".encode()
    headers |= {name.lower().encode(): _bytes(value) for name, value in body.headers.items()}
    if len(raw) > call.services.bounds.http.delivery_bytes:
        limit = call.services.bounds.http.delivery_bytes
        detail = f"The body is larger than {limit:,} bytes."
        raise Refusal(413, "too-large", detail, fix="Send less, or raise NOETL_WEBHOOK_MAX_KB.")
    headers |= signed_headers(spec, await shared_secret(call.services, spec), raw, now)
    return await _deliver(call, found, Delivery(tuple(headers.items()), raw, _bytes(body.query)))


@noun.route(
    "POST",
    "/api/hooks/{webhook_id}",
    "open",
    status=201,
    takes="*/*",
    is_public=True,
    problems=(404, 408, 409, 415, 429),
)
async def receive(call: Call, webhook_id: str) -> Delivered:
    """Receive a delivery, which its signature authenticates; no token is needed."""
    services = call.services
    give_back = services.deliveries.take(call.actor)
    try:
        found = await _found(call, webhook_id)
        named = replace(call, actor=Actor(f"webhook:{webhook_id}", "open"), action="execution.start")
        try:
            media_type(call.headers)
            body = await read_body(
                call.headers, call.receive, services.bounds.http.body_s, services.bounds.http.delivery_bytes
            )
            return await _deliver(named, found, Delivery(call.scope["headers"], body, call.scope["query_string"]))
        except Refusal as refusal:
            reason = refusal.reason if isinstance(refusal, Refused) else refusal.problem.type.rpartition("#")[2]
            await services.refused.note(webhook_id, reason, address_of(call.scope))
            raise
        except (InvalidInput, RecursionError, OverflowError) as error:
            await services.refused.note(webhook_id, "payload", address_of(call.scope))
            fix = "Correct the delivery, or the payload of the webhook."
            detail = (
                str(error) if isinstance(error, InvalidInput) else "The workload is too deep, or a number too large."
            )
            raise Refused(422, "payload", detail, fix) from None
    finally:
        give_back()


async def _deliver(call: Call, webhook: StoredTrigger, delivery: Delivery) -> Delivered:
    """Authenticate a delivery, then parse it and start its execution. Raises Refusal."""
    services, spec = call.services, spec_of(webhook)
    kind = media_type(delivery.first)
    try:
        secret = await shared_secret(services, spec)
    except (CredentialUnavailable, InvalidInput) as error:
        _log.error("Webhook %s refuses deliveries: %s", webhook.trigger_id, error)
        fix = "Its owner finds the reason with `noetl webhook show`."
        raise Refused(503, "not-ready", "This webhook cannot check deliveries now.", fix) from None
    authenticate(spec, secret, delivery, services.clock.civil())
    if webhook.paused:
        raise Refused(409, "paused", "This webhook is paused.", "Deliver again when it has been resumed.")
    scope = scope_of(spec, delivery, parse(kind, delivery.body))
    payload, key = await mapped(services, call.actor, spec, delivery, scope)
    asked = Execute(
        path=webhook.path, version=webhook.version, payload=payload, tags=(f"webhook:{webhook.trigger_id}",),
        wait_ms=spec.wait_ms,
    )  # fmt: skip
    name = key_name(f"webhook\0{webhook.trigger_id}", key) if key else ""
    started = await start(call, asked, name, is_checked=False)
    found = {field: getattr(started, field) for field in Delivered.__struct_fields__}
    return Delivered(**found)


def row_of(webhook: StoredTrigger, problem: str = "") -> WebhookRow:
    """Return a webhook as callers see it."""
    spec = spec_of(webhook)
    fields: dict[str, Any] = {name: getattr(spec, name) for name in _SPEC}
    fields |= {"payload": dict(spec.payload), "header": spec.carrier, "problem": problem}
    url = f"/api/hooks/{quote(webhook.trigger_id, safe=':')}"
    known = ("path", "version", "owner", "paused", "created_at", "created_by", "changed_at")
    return WebhookRow(
        webhook_id=webhook.trigger_id, url=url, **fields, **{name: getattr(webhook, name) for name in known}
    )


def spec_of(webhook: StoredTrigger) -> WebhookSpec:
    """Return what a stored webhook holds."""
    return convert(webhook.spec, WebhookSpec)


async def _check(call: Call, spec: WebhookSpec, body: WebhookAsked) -> None:
    """Check a webhook, its credential and its playbook. Raises Refusal."""
    try:
        check(spec)
    except Problem as problem:
        raise Refusal(422, "invalid-input", problem.what, where=f"$.{problem.field}", fix=problem.fix) from None
    try:
        await shared_secret(call.services, spec)
    except NoetlError as error:
        fix = "Store the credential first: PUT /api/credentials/NAME."
        raise Refusal(422, "invalid-input", str(error), where="$.credential", fix=fix) from None
    if await call.services.lookups.content_hash(body.path, body.version) is None:
        which = f"version {body.version} of `{body.path}`" if body.version else f"`{body.path}`"
        near = await similar_path(call.services.store, body.path)
        raise not_found(f"The catalog has no {which}.{near}", "Register it with POST /api/catalog first.")


async def _apply(call: Call, webhook_id: str, change: Change) -> WebhookRow:
    found = await apply(call.services.triggers, KIND, webhook_id, change, call.act(webhook_id))
    return row_of(found) if found is not None else _missing(webhook_id)


async def _found(call: Call, webhook_id: str) -> StoredTrigger:
    found = await call.services.triggers.trigger(KIND, webhook_id)
    return found if found is not None else _missing(webhook_id)


def _missing(webhook_id: str) -> NoReturn:
    raise not_found(f"No webhook {webhook_id}.", "GET /api/webhooks lists the webhooks.")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
