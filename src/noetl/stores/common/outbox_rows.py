"""Rows of the outbox in SQL. Tested in tests/conformance/test_outbox.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from noetl.ports.outbox import OutboxMessage

_decode = msgspec.json.decode


def row_of(message: OutboxMessage) -> tuple[Any, ...]:
    """Encode a new message, in the order of `put_outbox`."""
    payload, headers = (msgspec.json.encode(part).decode() for part in (message.payload, message.headers))
    named = (message.key, message.topic, message.target, message.address, payload, headers, message.auth)
    return (*named, message.execution_id, message.available_at, message.created_at)


def message_of(row: Sequence[Any]) -> OutboxMessage:
    """Decode a row, in the order of `find_outbox`."""
    number, key, topic, target, address, payload, headers, auth, execution_id, *rest = row
    state, attempts, available_at, created_at, delivered_at, error = rest
    return OutboxMessage(
        key, topic, target, address, _decode(payload), _decode(headers), auth, execution_id,
        number, state, attempts, available_at, created_at, delivered_at, error,
    )  # fmt: skip
