"""Parquet files by day; a repeated batch replaces its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from noetl.model.events import Event
from noetl.observe.export.parquet import ParquetFiles
from noetl.observe.export.target import Exported, ExportError

pytestmark = pytest.mark.asyncio
NOON = 1_767_268_800_123  # on the first of January 2026
DAY = 86_400_000


def event(number: int, at: int = NOON, **more: Any) -> Exported:
    return Exported.of(Event(f"e.{number}", "7", number, "step.done", at, **more), "a/b")


def read(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(folder).to_pylist()
    return found


async def test_a_batch_is_one_file_for_each_day(tmp_path: Path) -> None:
    target = ParquetFiles(tmp_path / "made" / "log")
    await target.prepare()
    await target.send([event(1), event(2, NOON + DAY), event(3)], "b1", is_repeat=False)
    files = sorted(str(one.relative_to(tmp_path / "made" / "log")) for one in tmp_path.rglob("*") if one.is_file())
    assert files == ["date=2026-01-01/events-b1.parquet", "date=2026-01-02/events-b1.parquet"]
    rows = {row["event_id"]: row for row in read(tmp_path / "made" / "log")}
    assert {key: str(row["date"]) for key, row in rows.items()} == {
        "e.1": "2026-01-01", "e.2": "2026-01-02", "e.3": "2026-01-01",
    }  # fmt: skip
    assert rows["e.1"]["timestamp"].isoformat(timespec="milliseconds") == "2026-01-01T12:00:00.123+00:00"
    assert (rows["e.1"]["workflow_ref"], rows["e.1"]["status"], rows["e.1"]["iteration"]) == ("a/b", "COMPLETED", None)


async def test_a_repeat_replaces_the_files_of_the_first_try(tmp_path: Path) -> None:
    target = ParquetFiles(tmp_path)
    await target.prepare()
    await target.send([event(1), event(2, NOON + DAY)], "b1", is_repeat=True)
    await target.send([event(1), event(3)], "b1", is_repeat=True)  # the second event comes with the next batch
    await target.send([event(2, NOON + DAY)], "b2", is_repeat=False)
    assert sorted(row["event_id"] for row in read(tmp_path)) == ["e.1", "e.2", "e.3"]


async def test_a_folder_that_cannot_be_written_is_a_failed_export(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    target = ParquetFiles(tmp_path / "file" / "log")
    with pytest.raises(ExportError, match="log: "):
        await target.prepare()
    with pytest.raises(ExportError):
        await target.send([event(1)], "b1", is_repeat=False)
    await target.close()
