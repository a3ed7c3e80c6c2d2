"""A webhook as it is written: in a playbook, in a request or in the store.

    auth: github                 # or secret, hmac, stripe
    credential: github_webhook   # its value is the shared secret
    payload: { ref: "{{ body.ref }}" }

Tested in tests/unit/triggers/test_webhook.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from noetl.schedules.spec import Problem, duration_ms
from noetl.triggers.template_fields import check_templates

Auth = Literal["secret", "hmac", "github", "stripe"]
Encoding = Literal["hex", "base64"]
AUTHS: Final[tuple[str, ...]] = get_args(Auth)
ENCODINGS: Final[tuple[str, ...]] = get_args(Encoding)
ROOTS: Final = ("headers", "body", "query", "digest")  # names that templates see
MOST_TOLERANCE_MS: Final = 86_400_000
MOST_WAIT_MS: Final = 30_000
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADERS: Final[Mapping[str, str]] = {
    "secret": "X-Webhook-Secret",
    "hmac": "X-Signature",
    "github": "X-Hub-Signature-256",
    "stripe": "Stripe-Signature",
}
_ONLY: Final[Mapping[str, tuple[str, ...]]] = {  # field → forms that have it
    "header": ("secret", "hmac"),
    "prefix": ("hmac",),
    "encoding": ("hmac",),
    "timestamp_header": ("hmac",),
    "tolerance": ("hmac", "stripe"),
}
_DELIVERY: Final[Mapping[str, str]] = {"github": "x-github-delivery", "secret": "idempotency-key"}


class WebhookSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a delivery is authenticated, deduplicated and turned into a workload."""

    auth: Auth
    credential: str
    header: str = ""  # that carries the secret or the signature
    prefix: str = ""  # before the signature in its header
    encoding: Encoding = "hex"
    timestamp_header: str = ""  # with it, the signature is of `TIMESTAMP.BODY`
    tolerance: str | int = "5m"  # of the timestamp
    dedup: str = ""  # template of the key that starts one execution
    payload: Mapping[str, Any] = {}  # with templates; empty: body, headers and query
    wait: str | int = 0  # for the end of the execution

    @property
    def carrier(self) -> str:
        """Lower-case name of the header with the secret or the signature."""
        return (self.header or _HEADERS[self.auth]).lower()

    @property
    def tolerance_ms(self) -> int:
        return duration_ms(self.tolerance)

    @property
    def wait_ms(self) -> int:
        return duration_ms(self.wait)

    @property
    def delivery_header(self) -> str:
        """Lower-case name of the header that identifies a delivery, or an empty text."""
        return _DELIVERY.get(self.auth, "")


def check(spec: WebhookSpec) -> None:
    """Check a webhook. Raises Problem with the first mistake."""
    if not spec.credential.strip():
        raise Problem("credential", "A webhook needs a credential.", "Name one whose value is the shared secret.")
    for field, forms in _ONLY.items():
        given = getattr(spec, field) != getattr(_PLAIN, field)
        if given and spec.auth not in forms:
            what = f"`auth: {spec.auth}` has no `{field}`."
            raise Problem(field, what, f"Remove it, or write {' or '.join(f'`auth: {form}`' for form in forms)}.")
    for field in ("header", "timestamp_header"):
        if getattr(spec, field) and not _HEADER.fullmatch(getattr(spec, field)):
            fix = "Write a name such as `X-Signature`."
            raise Problem(field, f"{getattr(spec, field)!r} is no name of a header.", fix)
    _bounded("tolerance", spec.tolerance, 1_000, MOST_TOLERANCE_MS, "Write seconds, or a text such as 5m, up to 24h.")
    _bounded("wait", spec.wait, 0, MOST_WAIT_MS, "Write seconds up to 30.")
    check_templates("dedup", spec.dedup, ROOTS, "A delivery")
    check_templates("payload", spec.payload, ROOTS, "A delivery")


def _bounded(field: str, given: str | int, least: int, most: int, fix: str) -> None:
    try:
        found = duration_ms(given)
    except ValueError:
        raise Problem(field, f"{given!r} is no duration.", fix) from None
    if not least <= found <= most:
        raise Problem(field, f"{given!r} is out of range.", fix)


_PLAIN: Final = WebhookSpec("secret", "")
