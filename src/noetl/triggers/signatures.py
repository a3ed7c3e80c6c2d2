"""Proofs of a delivery: a shared secret, or an HMAC-SHA256 signature of its bytes.

Every comparison takes the same time wherever values differ. Headers are compared as bytes, so no text in them is
interpreted. Reads no clock. Tested in tests/unit/triggers/test_signatures.py.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Final

from noetl.triggers.webhook import WebhookSpec

_MOST_SIGNATURES: Final = 8  # of one Stripe header: while its secret is rotated, there are two
_MOST_DIGITS: Final = 12  # of a timestamp in seconds


def refusal_of(spec: WebhookSpec, secret: bytes, headers: Mapping[bytes, bytes], body: bytes, now: int) -> str:
    """Return why a delivery is not authentic, in a word; empty: it is.

    Reasons are names in the audit trail, so none is a name of secrets, whose values are masked.
    """
    given = headers.get(spec.carrier.encode())
    if given is None:
        return "unsigned"
    if spec.auth == "secret":
        return "" if hmac.compare_digest(sha256(given).digest(), sha256(secret).digest()) else "secret-mismatch"
    if spec.auth == "stripe":
        return _check_stripe(spec, secret, given, body, now)
    if spec.auth == "github":
        return "" if hmac.compare_digest(given, b"sha256=" + _sign(secret, body, "hex")) else "signature"
    return _check_hmac(spec, secret, given, headers, body, now)


def signed_headers(spec: WebhookSpec, secret: bytes, body: bytes, now: int) -> dict[bytes, bytes]:
    """Return the headers that prove a delivery, as its sender makes them."""
    carrier, second = spec.carrier.encode(), b"%d" % (now // 1000)
    if spec.auth == "secret":
        return {carrier: secret}
    if spec.auth == "stripe":
        return {carrier: b"t=" + second + b",v1=" + _sign(secret, second + b"." + body, "hex")}
    if spec.auth == "github":
        return {carrier: b"sha256=" + _sign(secret, body, "hex")}
    if not spec.timestamp_header:
        return {carrier: spec.prefix.encode() + _sign(secret, body, spec.encoding)}
    signature = spec.prefix.encode() + _sign(secret, second + b"." + body, spec.encoding)
    return {carrier: signature, spec.timestamp_header.lower().encode(): second}


def _check_hmac(
    spec: WebhookSpec, secret: bytes, given: bytes, headers: Mapping[bytes, bytes], body: bytes, now: int
) -> str:
    signed = body
    if spec.timestamp_header:
        second = headers.get(spec.timestamp_header.lower().encode(), b"")
        if not _is_recent(second, now, spec.tolerance_ms):
            return "timestamp"
        signed = second + b"." + body
    wanted = spec.prefix.encode() + _sign(secret, signed, spec.encoding)
    return "" if hmac.compare_digest(given, wanted) else "signature"


def _check_stripe(spec: WebhookSpec, secret: bytes, given: bytes, body: bytes, now: int) -> str:
    parts = [part.strip().partition(b"=") for part in given.split(b",", _MOST_SIGNATURES + 2)]
    seconds = [value for name, _, value in parts if name == b"t"]
    if len(seconds) != 1 or not _is_recent(seconds[0], now, spec.tolerance_ms):
        return "timestamp"
    wanted = _sign(secret, seconds[0] + b"." + body, "hex")
    found = [hmac.compare_digest(value, wanted) for name, _, value in parts if name == b"v1"]
    return "" if any(found[:_MOST_SIGNATURES]) else "signature"


def _is_recent(second: bytes, now: int, tolerance_ms: int) -> bool:
    if not second.isdigit() or len(second) > _MOST_DIGITS:
        return False
    return abs(int(second) * 1000 - now) <= tolerance_ms


def _sign(secret: bytes, signed: bytes, encoding: str) -> bytes:
    digest = hmac.new(secret, signed, sha256)
    return b64encode(digest.digest()) if encoding == "base64" else digest.hexdigest().encode()
