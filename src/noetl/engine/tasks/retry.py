"""When a task is retried, and the delay before it.

Jitter is derived from a seed: equal attempts have equal delays. Tested in tests/unit/engine/tasks/test_retry.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from msgspec import Struct

from noetl.expr.sql.statements import is_read_only
from noetl.model.outcome import TaskError

HOLD_MS: Final = 3_000  # longer delays release the lease
MOST_ASKED_MS: Final = 86_400_000  # cap of `retry_after`: one day
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_SQL_FIELDS: Final = ("command", "query", "commands")
_SQL_KINDS: Final = frozenset({"postgres", "duckdb", "ducklake", "snowflake"})
_SINK: Final = {"max_attempts": 8, "max_ms": 60_000}  # defaults for tasks that write
_SAFE_MODES: Final = ("upsert", "overwrite")
_TELLS_SENT: Final = frozenset({"http", "postgres"})  # their errors say whether the request was sent


class Schedule(Struct, frozen=True):
    """Attempts, the first included, and delays; `jitter` is a fraction."""

    attempts: int
    delay_ms: float = 0.0
    backoff: str = "none"
    max_ms: float | None = None
    jitter: float = 0.0


def chance(*parts: object) -> float:
    """Return a number in [0, 1) derived from the arguments."""
    digest = blake2b(":".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def delay_ms(schedule: Schedule, retry: int, drawn: float) -> int:
    """Return the delay before retry `retry` (from 1); `drawn` sets the jitter."""
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
    """Return the runtime's schedule: `retries.plugin`, and `retries.sink` for writes."""
    limits: dict[str, Any] = dict(_SINK) if stores else {}
    for name in ("plugin", "sink") if stores else ("plugin",):
        limits |= _limits(settings.get("retries"), name)
    return Schedule(
        attempts=int(limits.get("max_attempts", 6)),
        delay_ms=float(limits.get("base_ms", 200)),
        backoff="exponential",
        max_ms=float(limits.get("max_ms", 30_000)),
        jitter=0.5,
    )


def _limits(retries: Any, name: str) -> Mapping[str, Any]:
    limits = retries.get(name) if isinstance(retries, Mapping) else None
    return limits if isinstance(limits, Mapping) else {}


def delivery_delay_ms(retries: Any, delivery: int, drawn: float) -> int:
    """Return the delay before a redelivery; zero without `retries.dispatch`."""
    limits = _limits(retries, "dispatch")
    base, most = float(limits.get("base_ms", 0)), float(limits.get("max_ms", 30_000))
    return delay_ms(Schedule(0, base, "exponential", most, jitter=0.5), delivery, drawn)


def asked_ms(error: TaskError | None) -> int:
    """Return the `retry_after` of an error in milliseconds, up to a day."""
    asked = error.retry_after if error is not None else None
    return int(min(asked * 1000, MOST_ASKED_MS)) if asked is not None and asked > 0 else 0


def may_run_again(kind: str, fields: Mapping[str, Any], error: TaskError, idempotent: bool) -> bool:
    """Return whether to retry; after a possible effect only if idempotent."""
    if not error.retryable:
        return False
    if not _may_have_taken_effect(kind, error):
        return True
    if idempotent or fields.get("transactional") is True:
        return True
    if fields.get("mode") in _SAFE_MODES or kind == "outbox" or (kind == "artifact" and fields.get("action") == "put"):
        return True  # writes the same rows, bytes or message again
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
        sql = fields.get(name)
        texts += [sql] if isinstance(sql, str) else sql if isinstance(sql, list) else []
    return bool(texts) and all(isinstance(text, str) and is_read_only(text) for text in texts)
