"""When a task is tried again, and how long to wait before that.

Two schedules exist: the one a rule asks for, and the runtime's own for tasks without a policy. Chance comes from a seed, so
the same attempt of the same work always waits as long. Nothing here waits. Tested in tests/unit/engine/test_retry.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct

from noetl.expr.sql import is_read_only
from noetl.model.outcome import TaskError

HOLD_MS: Final = 3_000  # a worker waits this long in place; anything longer gives the lease back
MOST_ASKED_MS: Final = 86_400_000  # a server that asks for more than a day is asked again after a day
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_SQL_FIELDS: Final = ("command", "query", "commands")
_SQL_KINDS: Final = frozenset({"postgres", "duckdb", "ducklake", "snowflake"})
_SINK: Final = {"max_attempts": 8, "max_ms": 60_000}  # a write is worth more patience, where nobody says otherwise
_SAFE_MODES: Final = ("upsert", "overwrite")
_TELLS_SENT: Final = frozenset({"http", "postgres"})  # their errors say whether the request had left


class Schedule(Struct, frozen=True):
    """How often and how long: `attempts` counts every run, the first included; `jitter` is a share of the delay."""

    attempts: int
    delay_ms: float = 0.0
    backoff: str = "none"
    max_ms: float | None = None
    jitter: float = 0.0


def chance(*parts: object) -> float:
    """Give a number from 0 up to 1 that depends on nothing but its arguments."""
    digest = blake2b(":".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def delay_ms(schedule: Schedule, retry: int, drawn: float) -> int:
    """Give the wait before retry number `retry` (from 1); never above the cap, whatever was drawn."""
    if schedule.backoff == "linear":
        delay = schedule.delay_ms * retry
    elif schedule.backoff == "exponential":
        delay = schedule.delay_ms * 2.0 ** min(retry - 1, 60)
    else:
        delay = schedule.delay_ms
    if schedule.max_ms is not None:
        delay = min(delay, schedule.max_ms)
    delay *= 1 - schedule.jitter + 2 * schedule.jitter * drawn
    if schedule.max_ms is not None:
        delay = min(delay, schedule.max_ms)
    return max(0, int(min(delay, 2.0**52)))


def runtime_schedule(settings: Mapping[str, Any], stores: bool = False) -> Schedule:
    """Give the schedule of a task without a policy: `retries.plugin`, and over it `retries.sink` for a task that stores."""
    found: dict[str, Any] = dict(_SINK) if stores else {}
    for name in ("plugin", "sink") if stores else ("plugin",):
        found |= _limits(settings.get("retries"), name)
    return Schedule(
        attempts=int(found.get("max_attempts", 6)),
        delay_ms=float(found.get("base_ms", 200)),
        backoff="exponential",
        max_ms=float(found.get("max_ms", 30_000)),
        jitter=0.5,
    )


def _limits(retries: Any, name: str) -> Mapping[str, Any]:
    given = retries.get(name) if isinstance(retries, Mapping) else None
    return given if isinstance(given, Mapping) else {}


def delivery_delay_ms(retries: Any, delivery: int, drawn: float) -> int:
    """Give the wait before work goes out again that `delivery` workers lost: none, unless `retries.dispatch` says so."""
    found = _limits(retries, "dispatch")
    base, most = float(found.get("base_ms", 0)), float(found.get("max_ms", 30_000))
    return delay_ms(Schedule(0, base, "exponential", most, jitter=0.5), delivery, drawn)


def asked_ms(error: TaskError | None) -> int:
    """Give how long the other side asked to be left alone; it knows better than our cap, within a day."""
    asked = error.retry_after if error is not None else None
    return int(min(asked * 1000, MOST_ASKED_MS)) if asked is not None and asked > 0 else 0


def may_run_again(kind: str, fields: Mapping[str, Any], error: TaskError, idempotent: bool) -> bool:
    """Tell whether the runtime may repeat an attempt that failed like this.

    An attempt that may have taken effect is repeated only where doing it twice is the same as doing it once.
    """
    if not error.retryable:
        return False
    if not _may_have_taken_effect(kind, error):
        return True
    if idempotent or fields.get("transactional") is True:
        return True
    if fields.get("mode") in _SAFE_MODES or kind == "outbox" or (kind == "artifact" and fields.get("action") == "put"):
        return True  # the same rows, bytes or message are written again
    if kind == "http":
        return str(fields.get("method") or "GET").upper() in _SAFE_METHODS
    return kind in _SQL_KINDS and _reads_only(fields)


def _may_have_taken_effect(kind: str, error: TaskError) -> bool:
    if error.sent:
        return True
    if error.kind not in ("timeout", "db_timeout"):
        return False
    return kind not in _TELLS_SENT or not error.code  # without a code it was ended from outside, at an unknown point


def _reads_only(fields: Mapping[str, Any]) -> bool:
    texts: list[Any] = []
    for name in _SQL_FIELDS:
        found = fields.get(name)
        texts += [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return bool(texts) and all(isinstance(text, str) and is_read_only(text) for text in texts)
