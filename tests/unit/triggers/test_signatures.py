"""Proofs of deliveries: vectors of the providers, tricks with bytes, and times."""

from __future__ import annotations

from typing import Any

import pytest

from noetl.triggers.signatures import refusal_of, signed_headers
from noetl.triggers.webhook import WebhookSpec

NOW = 1_700_000_000_000
SECRET = b"It's a Secret to Everybody"
FORMS: tuple[dict[str, Any], ...] = (
    {"auth": "secret"},
    {"auth": "secret", "header": "Authorization"},
    {"auth": "hmac"},
    {"auth": "hmac", "prefix": "sha256=", "encoding": "base64", "header": "X-Sig"},
    {"auth": "hmac", "timestamp_header": "X-Time"},
    {"auth": "github"},
    {"auth": "stripe"},
)


def spec(**more: Any) -> WebhookSpec:
    return WebhookSpec(credential="c", **more)


def test_the_example_of_github_is_accepted() -> None:
    # From GitHub's page "Validating webhook deliveries".
    header = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    assert refusal_of(spec(auth="github"), SECRET, {b"x-hub-signature-256": header}, b"Hello, World!", NOW) == ""


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_what_is_signed_is_accepted_and_anything_else_refused(form: dict[str, Any]) -> None:
    made = spec(**form)
    headers = signed_headers(made, SECRET, b"\xff\x00 body", NOW)
    assert refusal_of(made, SECRET, headers, b"\xff\x00 body", NOW + 299_000) == ""
    assert refusal_of(made, SECRET[:-1], headers, b"\xff\x00 body", NOW)
    assert refusal_of(made, SECRET, {}, b"\xff\x00 body", NOW) == "unsigned"
    if made.auth != "secret":
        assert refusal_of(made, SECRET, headers, b"\xff\x00 bodY", NOW) == "signature"
    for name, value in headers.items():
        for wrong in (b"", value[:-1], value + b"0", value.upper() + b" ", "ſ".encode() + value, value + b"\x00"):
            assert refusal_of(made, SECRET, {**headers, name: wrong}, b"\xff\x00 body", NOW)


@pytest.mark.parametrize("form", [{"auth": "stripe"}, {"auth": "hmac", "timestamp_header": "X-Time"}], ids=str)
@pytest.mark.parametrize("shift", [-301_000, 301_000])
def test_an_old_or_future_delivery_is_refused(form: dict[str, Any], shift: int) -> None:
    made = spec(**form)
    headers = signed_headers(made, SECRET, b"x", NOW + shift)
    assert refusal_of(made, SECRET, headers, b"x", NOW) == "timestamp"
    assert refusal_of(spec(**form, tolerance="10m"), SECRET, headers, b"x", NOW) == ""


def test_a_timestamp_is_signed() -> None:
    made = spec(auth="hmac", timestamp_header="X-Time")
    headers = signed_headers(made, SECRET, b"x", NOW)
    later = {**headers, b"x-time": b"%d" % (NOW // 1000 + 10)}
    assert refusal_of(made, SECRET, later, b"x", NOW) == "signature"


@pytest.mark.parametrize("second", [b"-5", b"+5", b"1e9", "١٢٣".encode(), b"9" * 5000, b"", b" 5"])
def test_a_timestamp_that_is_no_number_is_refused(second: bytes) -> None:
    header = b"t=" + second + b",v1=00"
    assert refusal_of(spec(auth="stripe"), SECRET, {b"stripe-signature": header}, b"x", NOW) == "timestamp"


def test_stripe_signs_with_two_secrets_while_one_is_rotated() -> None:
    made = spec(auth="stripe")
    [mine] = signed_headers(made, SECRET, b"x", NOW).values()
    [other] = signed_headers(made, b"another secret of 16", b"x", NOW).values()
    both = other + b",v0=ignored,v1=" + mine.partition(b"v1=")[2]
    assert refusal_of(made, SECRET, {b"stripe-signature": both}, b"x", NOW) == ""
    twice = mine + b",t=1"
    assert refusal_of(made, SECRET, {b"stripe-signature": twice}, b"x", NOW) == "timestamp"
    many = other + b",v1=0" * 50 + b",v1=" + mine.partition(b"v1=")[2]
    assert refusal_of(made, SECRET, {b"stripe-signature": many}, b"x", NOW) == "signature"
