"""Export to ClickHouse: one row per event in `observability.noetl_events`.

Rows are inserted in batches through the HTTP interface. A batch that may have arrived before is first compared with the table
by event id, so an event is there once; the engine of the table removes what two servers might insert at the same moment.
Tested in tests/observe/test_clickhouse.py, on a real engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import msgspec

from noetl.model.errors import InvalidInput
from noetl.observe.export.target import Exported
from noetl.observe.export.web import Poster

TABLE: Final = "observability.noetl_events"
_NAME: Final = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*")
_ASKED: Final = 1_000  # ids in one query: a query has at most 256 KiB
COLUMNS: Final = (
    ("EventId", "String"),
    ("ExecutionId", "String"),
    ("Seq", "UInt64"),
    ("EventType", "LowCardinality(String)"),
    ("EventName", "LowCardinality(String)"),
    ("Status", "LowCardinality(String)"),
    ("WorkflowRef", "LowCardinality(String)"),
    ("StepName", "LowCardinality(String)"),
    ("Payload", "String CODEC(ZSTD(3))"),
    ("Timestamp", "DateTime64(3, 'UTC')"),
    ("DurationMs", "Nullable(Float64)"),
    ("ErrorClass", "LowCardinality(String)"),
    ("ErrorMessage", "String"),
    ("Source", "LowCardinality(String)"),
    ("EntityType", "LowCardinality(String)"),
    ("EntityId", "String"),
    ("ParentId", "Nullable(String)"),
    ("StepRunId", "Nullable(String)"),
    ("TaskRunId", "Nullable(String)"),
    ("Iteration", "Nullable(UInt64)"),
    ("Attempt", "Nullable(UInt32)"),
    ("Version", "UInt16"),
)
_INDEXES: Final = (
    ("by_event", "EventId", "bloom_filter(0.01)"),
    ("by_type", "EventType", "set(100)"),
    ("by_status", "Status", "set(4)"),
    ("by_time", "Timestamp", "minmax"),
)
_ENGINE: Final = """ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(Timestamp)
ORDER BY (ExecutionId, Seq, EventId)"""


def table(name: str = TABLE) -> tuple[str, ...]:
    """Return the statements that create the table of events."""
    columns = [f"  {column} {kind}" for column, kind in COLUMNS]
    indexes = [f"  INDEX {index} {column} TYPE {kind} GRANULARITY 4" for index, column, kind in _INDEXES]
    body = ",\n".join([*columns, *indexes])
    return (
        f"CREATE DATABASE IF NOT EXISTS {name.partition('.')[0]}",
        f"CREATE TABLE IF NOT EXISTS {name} (\n{body}\n)\n{_ENGINE}",
    )


class ClickHouse:
    """Target of an export in ClickHouse."""

    name = "clickhouse"
    wanted: frozenset[str] | None = None
    every_s = 1.0
    most = 5_000

    def __init__(self, url: str, table_name: str = TABLE) -> None:
        if _NAME.fullmatch(table_name) is None:
            raise InvalidInput(f"{table_name!r} names no table of ClickHouse. Write DATABASE.TABLE, such as {TABLE}.")
        self._table = table_name
        poster = Poster(url)
        secret = {"X-ClickHouse-User": poster.user or "default", "X-ClickHouse-Key": poster.password}
        self._poster = Poster(url, secret if poster.user else None)

    async def prepare(self) -> None:
        # A user without the right to create may insert into a table that is there.
        if (await self._ask(f"EXISTS TABLE {self._table}")).strip() == b"1":
            return
        for statement in table(self._table):
            await self._ask(statement)

    async def send(self, batch: Sequence[Exported], begin: str, *, is_repeat: bool) -> None:  # noqa: ARG002  the table tells what arrived
        known = await self._known(batch) if is_repeat else frozenset()
        rows = [row(one) for one in batch if one.event.event_id not in known]
        if rows:
            insert = {"query": f"INSERT INTO {self._table} FORMAT JSONEachRow", "wait_end_of_query": "1"}
            await self._poster.post("/", msgspec.json.Encoder().encode_lines(rows), params=insert)

    async def close(self) -> None:
        await self._poster.close()

    async def _known(self, batch: Sequence[Exported]) -> frozenset[str]:
        """Return the ids of events that the table has."""
        found: set[str] = set()
        for part in _parts(batch):
            executions, events = (_quoted(ids) for ids in zip(*part, strict=True))
            where = f"ExecutionId IN ({executions}) AND EventId IN ({events})"
            answer = await self._ask(f"SELECT EventId FROM {self._table} WHERE {where} FORMAT TabSeparatedRaw")
            found.update(answer.decode().split("\n"))
        return frozenset(found)

    async def _ask(self, query: str) -> bytes:
        return await self._poster.post("/", query.encode(), kind="text/plain")


def row(one: Exported) -> dict[str, Any]:
    """Return an event as a row of the table."""
    event = one.event
    return {
        "EventId": event.event_id,
        "ExecutionId": event.execution_id,
        "Seq": event.seq,
        "EventType": event.event_type,
        "EventName": one.name,
        "Status": one.status,
        "WorkflowRef": one.workflow,
        "StepName": one.step,
        "Payload": one.payload,
        "Timestamp": moment(event.timestamp),
        "DurationMs": event.duration_ms,
        "ErrorClass": one.error_class,
        "ErrorMessage": one.error_message,
        "Source": event.source,
        "EntityType": event.entity_type,
        "EntityId": event.entity_id,
        "ParentId": event.parent_id,
        "StepRunId": event.step_run_id,
        "TaskRunId": event.task_run_id,
        "Iteration": event.iteration,
        "Attempt": event.attempt,
        "Version": event.version,
    }


@lru_cache(maxsize=1_024)
def moment(at: int) -> str:
    """Return a time as ClickHouse reads it, in UTC."""
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%d %H:%M:%S}.{at % 1000:03d}"


def _parts(batch: Sequence[Exported]) -> Iterator[list[tuple[str, str]]]:
    for first in range(0, len(batch), _ASKED):
        yield [(one.event.execution_id, one.event.event_id) for one in batch[first : first + _ASKED]]


def _quoted(ids: Iterable[str]) -> str:
    texts = (one.replace("\\", "\\\\").replace("'", "\\'") for one in dict.fromkeys(ids))
    return ",".join(f"'{text}'" for text in texts)
