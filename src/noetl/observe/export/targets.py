"""Export targets that settings name. Tested in tests/server/test_exports.py."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from noetl.extras import install_command
from noetl.model.errors import InvalidInput
from noetl.observe.export.clickhouse import ClickHouse
from noetl.observe.export.openlineage import OpenLineage
from noetl.observe.export.otlp_logs import OtlpLogs
from noetl.observe.export.parquet import ParquetFiles
from noetl.observe.export.target import ExportTarget
from noetl.settings import EXPORT_PARQUET_FOLDER, ExportSettings

TARGETS: Final = (ClickHouse.name, ParquetFiles.name, OtlpLogs.name, OpenLineage.name)


def export_targets(settings: ExportSettings) -> Iterator[ExportTarget]:
    """Yield the targets of a process; none connects yet. Raises InvalidInput."""
    if settings.clickhouse_url:
        yield ClickHouse(settings.clickhouse_url, settings.clickhouse_table)
    if settings.parquet_folder:
        if find_spec("pyarrow") is None:
            raise InvalidInput(f"{EXPORT_PARQUET_FOLDER} needs pyarrow. Install it: {install_command('archive')}")
        yield ParquetFiles(Path(settings.parquet_folder))
    if settings.otlp_url:
        yield OtlpLogs(settings.otlp_url, settings.otlp_headers)
    if settings.openlineage_url:
        yield OpenLineage(settings.openlineage_url, settings.openlineage_namespace, settings.openlineage_headers)
