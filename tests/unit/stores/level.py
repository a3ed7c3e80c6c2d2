"""Stores of each schema level, kept as files, and the script that records one.

After a new migration, run `python -m tests.unit.stores.level`. It records a store of the newest level in every dialect; the
files of older levels stay as they are. An execution in it has ended, and another waits for a signal.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import psycopg

from noetl.model.messages import Signal, Start
from noetl.settings import Settings
from noetl.stores.common.queries import migrations
from noetl.wiring.embedded import embedded
from tests.services import postgres_server
from tests.unit.server.system import register

DIALECTS = ("sqlite", "postgres")
FOLDER = Path(__file__).with_name("levels")
ENDED, WAITING = "1000000000000000001", "1000000000000000002"
PLAYBOOK = """\
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: kept, path: test/kept }
workflow:
  - step: ask
    tool: { kind: wait, signal: go }
    next: say
  - step: say
    tool: { kind: noop, result: "{{ ask.n }}" }
"""


def file_of(dialect: str, level: int) -> Path:
    """Return the file with a store of a level."""
    return FOLDER / f"{dialect}-{level}.gz"


def newest(dialect: str) -> int:
    return len(migrations(dialect))


def load_sqlite(data: bytes, folder: Path) -> Settings:
    """Return the settings of a copy of a kept SQLite file."""
    (folder / "noetl.db").write_bytes(data)
    return Settings(folder / "noetl.db")


def load_postgres(data: bytes, folder: Path, address: str) -> Settings:
    """Restore a kept dump into an empty database; return its settings."""
    text = re.sub(r"^\\.*$", "", data.decode(), flags=re.MULTILINE)  # commands of psql
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(text.encode())
    return Settings(folder / "noetl.db", database=address)


async def signal(settings: Settings, execution_id: str) -> str:
    """Signal an execution that waits, and return its status when it has ended."""
    async with embedded(settings) as app, app.run_worker(""):
        await app.control.submit(execution_id, Signal("sent", "go", {"n": 7}))
        async for _ in app.control.follow(execution_id):
            pass
        row = await app.store.execution(execution_id)
        assert row is not None
        return f"{row['status']} {row['result']}"


async def _fill(settings: Settings) -> None:
    async with embedded(settings) as app, app.run_worker(""):
        playbook = await register(app.store, PLAYBOOK, "test/kept")
        for execution_id in (ENDED, WAITING):
            await app.control.submit(execution_id, Start(f"start-{execution_id}", "test/kept", playbook))
            async for event in app.control.follow(execution_id):
                if event.event_type == "step.suspended":
                    break
    assert await signal(settings, ENDED) == "completed 7"


def record() -> None:
    """Record a store of the newest level in each dialect."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(Path(folder) / "noetl.db")
        asyncio.run(_fill(settings))
        with closing(sqlite3.connect(settings.store)) as connection:
            connection.execute("VACUUM INTO ?", (f"{folder}/copy.db",))
        _keep("sqlite", (Path(folder) / "copy.db").read_bytes())
        with postgres_server() as server:
            asyncio.run(_fill(Settings(Path(folder) / "other.db", database=server.address())))
            _keep("postgres", server.dump())


def _keep(dialect: str, data: bytes) -> None:
    path = file_of(dialect, newest(dialect))
    path.write_bytes(gzip.compress(data, mtime=0))
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    record()
