"""Export to Parquet files, one folder for each day.

The folder `date=2026-01-31/` has the events of that day in UTC. A batch writes one file per day, named after the position before it. A batch that is repeated replaces the files of its
predecessor, so an event is in one file. Needs pyarrow. Tested in tests/unit/observe/export/test_parquet.py.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from noetl.observe.export.target import Exported, ExportError
from noetl.private_files import make_private_folder, open_private

_TEXT: Final = (
    "event_id", "execution_id", "event_type", "event_name", "status", "workflow_ref", "step_name", "payload",
    "error_class", "error_message", "source", "entity_type", "entity_id", "parent_id", "step_run_id", "task_run_id",
)  # fmt: skip
_NUMBERS: Final = ("seq", "iteration", "attempt", "version")


class ParquetFiles:
    """Target of an export in a folder."""

    name = "parquet"
    wanted: frozenset[str] | None = None
    every_s = 60.0  # each batch makes a file
    most = 20_000

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def prepare(self) -> None:
        try:
            make_private_folder(self._folder)
        except OSError as error:
            raise ExportError(f"{self._folder}: {error.strerror}") from None

    async def send(self, batch: Sequence[Exported], begin: str, *, is_repeat: bool) -> None:
        try:
            await asyncio.to_thread(self._write, batch, f"events-{begin}.parquet", is_repeat)
        except OSError as error:
            raise ExportError(f"{self._folder}: {error.strerror or error}") from None

    async def close(self) -> None:
        return

    def _write(self, batch: Sequence[Exported], name: str, is_repeat: bool) -> None:
        import pyarrow
        from pyarrow import parquet

        schema = _schema(pyarrow)
        if is_repeat:
            for stale in self._folder.glob(f"date=*/{name}"):
                stale.unlink()
        days: dict[str, list[Exported]] = {}
        for one in batch:
            day = datetime.fromtimestamp(one.event.timestamp / 1000, UTC).date().isoformat()
            days.setdefault(day, []).append(one)
        for day, rows in days.items():
            path = self._folder / f"date={day}" / name
            make_private_folder(path.parent)
            part = path.with_name(f".{name}.part")  # readers of a folder skip hidden files
            part.unlink(missing_ok=True)
            os.close(open_private(part))
            parquet.write_table(
                pyarrow.Table.from_pylist([row(one) for one in rows], schema=schema), part, compression="zstd"
            )
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)


def row(one: Exported) -> dict[str, Any]:
    """Return an event as a row of a file."""
    event = one.event
    return {
        "event_id": event.event_id,
        "execution_id": event.execution_id,
        "seq": event.seq,
        "event_type": event.event_type,
        "event_name": one.name,
        "status": one.status,
        "workflow_ref": one.workflow,
        "step_name": one.step,
        "payload": one.payload,
        "timestamp": event.timestamp,
        "duration_ms": event.duration_ms,
        "error_class": one.error_class,
        "error_message": one.error_message,
        "source": event.source,
        "entity_type": event.entity_type,
        "entity_id": event.entity_id,
        "parent_id": event.parent_id,
        "step_run_id": event.step_run_id,
        "task_run_id": event.task_run_id,
        "iteration": event.iteration,
        "attempt": event.attempt,
        "version": event.version,
    }


def _schema(pyarrow: Any) -> Any:
    columns = [(name, pyarrow.string()) for name in _TEXT] + [(name, pyarrow.int64()) for name in _NUMBERS]
    times = [("timestamp", pyarrow.timestamp("ms", tz="UTC")), ("duration_ms", pyarrow.float64())]
    return pyarrow.schema(columns + times)
