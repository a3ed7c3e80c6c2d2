"""A delivery to a webhook: read, authenticated, parsed and mapped to a start.

The signature covers the bytes that arrived, so it is checked before anything is parsed; templates are rendered in a process
of its own. A refusal names its reason in one word, for the audit trail. Tested in tests/server/api/triggers/test_webhooks.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from noetl.model.errors import CredentialUnavailable, InvalidInput, NoetlError
from noetl.server.auth.gate import Actor
from noetl.server.auth.stored_credential import open_credential
from noetl.server.http.limits import decode_json
from noetl.server.problems import Refusal
from noetl.server.processes.render_apart import render_apart
from noetl.server.services import Services
from noetl.triggers.signatures import refusal_of
from noetl.triggers.webhook import WebhookSpec

JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
TEXT: Final = "text/plain"
LEAST_SECRET: Final = 16  # characters: senders can guess without a token
_MOST_FIELDS: Final = 1_000
_SECRETS: Final = ("value", "secret", "token", "api_key", "password")
_HIDDEN: Final = ("authorization", "proxy-authorization", "cookie")
_UTF8: Final = ("", "utf-8", "utf8", "us-ascii")
_json: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder()


class Refused(Refusal):
    """A delivery that starts nothing; `reason` stands in the audit trail."""

    def __init__(self, status: int, reason: str, detail: str, fix: str, where: str | None = None) -> None:
        super().__init__(status, reason, detail, where=where, fix=fix)
        self.reason = reason


@dataclass(frozen=True)
class Delivery:
    """What a sender sent."""

    headers: Sequence[tuple[bytes, bytes]]  # lower-case names
    body: bytes
    query: bytes = b""

    @property
    def first(self) -> dict[bytes, bytes]:
        """Headers by name; of repeated ones, the first."""
        return dict(reversed(self.headers))


def media_type(headers: Mapping[bytes, bytes]) -> str:
    """Return the media type of a body that can be parsed. Raises Refused."""
    whole = headers.get(b"content-type", b"").decode("latin-1")
    kind, *parameters = (part.strip().lower() for part in whole.split(";"))
    charset = next((one.partition("=")[2].strip('" ') for one in parameters if one.startswith("charset=")), "")
    fix = f"Send {JSON}, {FORM} or {TEXT}, in UTF-8."
    if kind not in (JSON, FORM, TEXT) and not (kind.startswith("application/") and kind.endswith("+json")):
        detail = f"The body is {kind[:100]!a}." if kind else "The body has no Content-Type."
        raise Refused(415, "media-type", detail, fix, "header Content-Type")
    if charset not in _UTF8:
        raise Refused(415, "media-type", f"The body is in {charset[:40]!a}.", fix, "header Content-Type")
    if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        raise Refused(415, "media-type", "The body is compressed.", "Send it as it is.", "header Content-Encoding")
    return kind if kind in (FORM, TEXT) else JSON


async def shared_secret(services: Services, spec: WebhookSpec) -> bytes:
    """Return the secret of a webhook. Raises CredentialUnavailable."""
    name = spec.credential
    try:
        _, data = await open_credential(services.team, services.vault, name)
    except KeyError:
        raise CredentialUnavailable(
            f"There is no credential `{name}`. Store it with `noetl credential put {name} --type secret`."
        ) from None
    found = next((data[field] for field in _SECRETS if data.get(field)), None)
    if not isinstance(found, str):
        fix = "Store it with the type `secret`."
        raise CredentialUnavailable(f"The credential `{name}` has no field {' or '.join(_SECRETS)}. {fix}")
    if len(found) < LEAST_SECRET:
        what = f"The secret in the credential `{name}` has less than {LEAST_SECRET} characters."
        raise CredentialUnavailable(f"{what} Use a random one: `openssl rand -hex 32`.")
    return found.encode("utf-8", "surrogatepass")


def authenticate(spec: WebhookSpec, secret: bytes, delivery: Delivery, now: int) -> None:
    """Check that the sender knows the secret. Raises Refused."""
    reason = refusal_of(spec, secret, delivery.first, delivery.body, now)
    if not reason:
        return
    texts = {
        "unsigned": f"The delivery has no header {spec.carrier}.",
        "timestamp": "The timestamp of the delivery is missing, or too far from the time of this server.",
    }
    detail = texts.get(reason, f"The header {spec.carrier} does not match the delivery.")
    fix = "Sign the exact bytes of the body with the secret of this webhook, and send them at once."
    raise Refused(401, reason, detail, fix, f"header {spec.carrier}")


def parse(kind: str, body: bytes) -> Any:
    """Return the data of a body. Raises Refused."""
    try:
        if kind == JSON:
            return decode_json(body, _json)
        text = body.decode()
        return text if kind == TEXT else _fields(text)
    except UnicodeDecodeError:
        raise Refused(400, "malformed", "The body is not UTF-8.", "Encode it as UTF-8.") from None
    except Refused:
        raise
    except Refusal as refusal:
        found = refusal.problem
        raise Refused(found.status, "malformed", found.detail, found.fix or "Send valid JSON.", found.where) from None


def _fields(text: str) -> dict[str, Any]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except UnicodeDecodeError:
        raise Refused(400, "malformed", "The fields are not UTF-8.", "Encode them as UTF-8.") from None
    except ValueError:
        what = f"The form has more than {_MOST_FIELDS:,} fields."
        raise Refused(413, "malformed", what, "Send fewer fields.") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        known = found.get(name)
        found[name] = value if name not in found else [*known, value] if isinstance(known, list) else [known, value]
    return found


def scope_of(spec: WebhookSpec, delivery: Delivery, data: Any) -> dict[str, Any]:
    """Return what templates see; headers that prove who calls are left out."""
    hidden = {*_HIDDEN, spec.carrier}
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in delivery.first.items()}
    return {
        "headers": {name: value for name, value in headers.items() if name not in hidden},
        "body": data,
        "query": _fields(delivery.query.decode("latin-1")),
        "digest": sha256(delivery.body).hexdigest(),
    }


async def mapped(
    services: Services, actor: Actor, spec: WebhookSpec, delivery: Delivery, scope: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """Return the payload and the deduplication key of a delivery. Raises Refused."""
    payload = dict(spec.payload) or {name: scope[name] for name in ("body", "headers", "query")}
    wanted = {
        **({"payload": dict(spec.payload)} if spec.payload else {}),
        **({"key": spec.dedup} if spec.dedup else {}),
    }
    rendered = await _rendered(services, actor, wanted, scope) if wanted else {}
    key = rendered.get("key") if spec.dedup else default_key(spec, delivery, scope)
    if spec.dedup and (key is None or key == "" or isinstance(key, dict | list)):
        raise Refused(422, "dedup", "`dedup` gives no text for this delivery.", "Correct the template of the webhook.")
    return rendered.get("payload", payload), str(key)


def default_key(spec: WebhookSpec, delivery: Delivery, scope: Mapping[str, Any]) -> str:
    """Return the key that identifies a delivery by its form; empty: none does."""
    if spec.auth == "hmac":
        return sha256(delivery.first[spec.carrier.encode()]).hexdigest()
    body = scope["body"]
    if spec.auth == "stripe" and isinstance(body, dict) and isinstance(body.get("id"), str) and body["id"]:
        return str(body["id"])
    name = spec.delivery_header
    found = str(scope["headers"].get(name, "")) if name else ""
    return found or ("" if spec.auth == "secret" else str(scope["digest"]))


async def _rendered(services: Services, actor: Actor, wanted: Any, scope: Mapping[str, Any]) -> dict[str, Any]:
    give_back = services.renderings.take(actor)
    try:
        now, seconds = services.clock.now(), services.bounds.check_s
        return dict(await render_apart(services.side, wanted, scope, now, seconds))
    except InvalidInput as error:
        raise Refused(422, "template", str(error), "Correct the templates of the webhook.") from None
    finally:
        give_back()


async def not_ready(services: Services, spec: WebhookSpec) -> str:
    """Return why a webhook cannot take deliveries; empty: it can."""
    try:
        await shared_secret(services, spec)
    except NoetlError as error:
        return str(error)
    return ""
