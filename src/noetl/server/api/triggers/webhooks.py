"""Webhooks, and the route that receives their deliveries.

Tested in tests/server/api/triggers/test_webhooks.py.
"""

from __future__ import annotations

import logging
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

from msgspec.structs import replace

from noetl.model.errors import CredentialUnavailable, InvalidInput, NoetlError
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
from noetl.server.auth.gate import Actor
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
from noetl.server.problems import Refusal
from noetl.triggers.signatures import signed_headers
from noetl.triggers.stored import read_spec
from noetl.triggers.webhook import WebhookSpec, check
from noetl.wire.requests import Execute
from noetl.wire.triggers.webhooks import Delivered, DeliveryAsked, WebhookAsked, WebhookRow, WebhookRows

KIND: Final = "webhook"
_SPEC = WebhookSpec.__struct_fields__
_EXAMPLE = {
    "name": "push", "path": "examples/hello", "auth": "github", "credential": "github_webhook",
    "payload": {"who": "{{ body.sender.login }}"},
}  # fmt: skip
_log = logging.getLogger(__name__)


async def row_of(_: Call, webhook: StoredTrigger) -> WebhookRow:
    """Return a webhook as callers see it."""
    url = f"/api/hooks/{quote(webhook.trigger_id, safe=':')}"
    names = ("path", "version", "owner", "paused", "created_at", "created_by", "changed_at")
    known: dict[str, Any] = {"webhook_id": webhook.trigger_id, "url": url}
    known |= {name: getattr(webhook, name) for name in names}
    try:
        spec = spec_of(webhook)
    except InvalidInput as error:
        return WebhookRow(auth="", credential="", header="", problem=str(error), **known)
    fields: dict[str, Any] = {name: getattr(spec, name) for name in _SPEC}
    fields |= {"payload": dict(spec.payload), "header": spec.carrier}
    return WebhookRow(**known, **fields)


async def _shown(call: Call, webhook: StoredTrigger) -> WebhookRow:
    row = await row_of(call, webhook)
    if row.problem:
        return row
    problem = await not_ready(call.services, spec_of(webhook))
    if await call.services.lookups.content_hash(webhook.path, webhook.version) is None:
        which = f"version {webhook.version} of `{webhook.path}`" if webhook.version else f"`{webhook.path}`"
        problem = f"{problem} The catalog has no {which}. Register it, or delete the webhook.".strip()
    return replace(row, problem=problem)


def spec_of(webhook: StoredTrigger) -> WebhookSpec:
    """Return what a stored webhook holds. Raises InvalidInput."""
    return read_spec(webhook.spec, WebhookSpec)


noun = Noun("webhooks", "Webhooks: endpoints that start playbooks, and their deliveries.")
WEBHOOKS = TriggerNoun(noun, "webhook", KIND, store_of(KIND), row_of, WebhookRow)


@WEBHOOKS.creates("operator", _EXAMPLE)
async def create(call: Call, body: WebhookAsked) -> WebhookRow:
    """Create a webhook of a registered playbook."""
    spec = WebhookSpec(**{name: getattr(body, name) for name in _SPEC})
    await _check(call, spec, body)
    made = new_trigger(call, KIND, body.name, body.path, spec, paused=body.paused, version=body.version)
    return await WEBHOOKS.add(call, made)


add_reads(WEBHOOKS, WebhookRows, "Return a webhook, and why it refuses deliveries, if it does.", _shown)
add_changes(
    WEBHOOKS,
    pauses="Pause a webhook: deliveries are refused until it is resumed.",
    resumes="Resume a paused webhook.",
    removes="Delete a webhook; running executions continue.",
)


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
    found = await WEBHOOKS.find(call, webhook_id)
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
        found = await WEBHOOKS.find(call, webhook_id)
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
    services, kind = call.services, media_type(delivery.first)
    try:
        spec = spec_of(webhook)
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
    try:
        started = await start(call, asked, name, is_checked=False)
    except Refusal as refusal:
        if refusal.problem.status != 404:
            raise
        # The sender may not read the catalog, so its names stay here.
        _log.error("Webhook %s refuses deliveries: %s", webhook.trigger_id, refusal.problem.detail)
        fix = "Its owner finds the reason with `noetl webhook show`."
        raise Refused(404, "not-found", "The playbook of this webhook is gone.", fix) from None
    found = {field: getattr(started, field) for field in Delivered.__struct_fields__}
    return Delivered(**found)


async def _check(call: Call, spec: WebhookSpec, body: WebhookAsked) -> None:
    """Check a webhook, its credential and its playbook. Raises Refusal."""
    with refusing():
        check(spec)
    try:
        await shared_secret(call.services, spec)
    except NoetlError as error:
        fix = "Store the credential first: PUT /api/credentials/NAME."
        raise Refusal(422, "invalid-input", str(error), where="$.credential", fix=fix) from None
    await find_playbook(call, body.path, body.version)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
