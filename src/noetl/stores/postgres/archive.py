"""Archives: logs of ended executions in Parquet files, read by `noetl replay`.

A file holds whole executions, ordered by id and seq. Tested in tests/unit/stores/postgres/test_admin.py.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import astuple

from noetl.extras import install_command
from noetl.model.errors import InvalidInput
from noetl.model.events import Event
from noetl.private_files import make_private_folder, open_private
from noetl.stores.common.queries import queries
from noetl.stores.postgres.rows import events_in

if TYPE_CHECKING:
    import asyncpg

_SQL = queries("postgres")
_ROWS = 20_000  # held in memory at once
_INTEGERS = ("execution_id", "seq", "timestamp", "iteration", "attempt", "version")
COLUMNS = (
    "event_id", "execution_id", "seq", "event_type", "timestamp", "source", "entity_type", "entity_id", "parent_id",
    "step_run_id", "task_run_id", "iteration", "attempt", "status", "duration_ms", "payload", "version",
)  # fmt: skip


async def write_archive(connection: asyncpg.Connection, path: Path, first: int, after: int) -> None:
    """Write the events of executions to a file, which appears complete and flushed."""
    parquet, schema = _parquet()
    import pyarrow

    try:
        make_private_folder(path.parent)
        part = path.with_name(path.name + ".part")
        part.unlink(missing_ok=True)
        os.close(open_private(part))
        with parquet.ParquetWriter(part, schema, compression="zstd") as writer:
            rows: list[tuple[Any, ...]] = []
            async for row in connection.cursor(_SQL["read_range"], first, after):
                rows += map(_row, events_in(*row))
                if len(rows) >= _ROWS:
                    writer.write_table(_table(pyarrow, schema, rows))
                    rows = []
            writer.write_table(_table(pyarrow, schema, rows))
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise InvalidInput(f"the archive {path} cannot be written: {error.strerror}") from None


def read_archive(place: Path, execution_id: str) -> list[Event]:
    """Read the log of an execution from a file, or from the files of a folder."""
    parquet, _ = _parquet()
    files = sorted(place.glob("*.parquet")) if place.is_dir() else [place]
    if not files or not all(path.is_file() for path in files):
        raise InvalidInput(f"there is no archive at {place}.")
    wanted = int(execution_id) if execution_id.isascii() and execution_id.isdecimal() else -1
    for path in files:
        try:
            table = parquet.read_table(path, columns=list(COLUMNS), filters=[("execution_id", "=", wanted)])
        except (OSError, ValueError) as error:
            raise InvalidInput(f"the archive {path} cannot be read: {error}") from None
        if table.num_rows:
            return sorted((_event(row) for row in table.to_pylist()), key=lambda event: event.seq)
    raise InvalidInput(f"there is no execution {execution_id} in the archive {place}.")


def _row(event: Event) -> tuple[Any, ...]:
    event_id, execution_id, *middle, payload, version = astuple(event)
    return (event_id, int(execution_id), *middle, msgspec.json.encode(payload).decode(), version)


def _event(row: dict[str, Any]) -> Event:
    payload = msgspec.json.decode(row["payload"])
    return Event(**{**row, "execution_id": str(row["execution_id"]), "payload": payload})


def _table(pyarrow: Any, schema: Any, rows: list[tuple[Any, ...]]) -> Any:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(COLUMNS)
    return pyarrow.table(dict(zip(COLUMNS, map(list, columns), strict=True)), schema=schema)


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InvalidInput(
            f"Archives need pyarrow, which is not installed. Run `{install_command('archive')}`."
        ) from None
    kinds = {name: pyarrow.int64() for name in _INTEGERS} | {"duration_ms": pyarrow.float64()}
    return parquet, pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in COLUMNS])
