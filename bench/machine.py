"""Describe the machine: processors, memory, system, interpreter and versions."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import version
from pathlib import Path

from noetl import __version__

SETTINGS = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_connections")


def machine(address: str) -> dict[str, str]:
    """Describe this machine and the database server at an address."""
    import psycopg

    with psycopg.connect(address) as connection:
        shown = [
            (name, connection.execute(f"SHOW {name}".encode()).fetchone()) for name in ("server_version", *SETTINGS)
        ]
    values = {name: row[0] if row else "" for name, row in shown}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processors": f"{os.cpu_count()} × {platform.machine()}",
        "memory": f"{memory:.1f} GB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "load before": f"{os.getloadavg()[0]:.1f}" if Path("/proc/loadavg").exists() else "",
        "python": platform.python_version(),
        "noetl": __version__,
        "sqlite": f"{sqlite3.sqlite_version}, WAL, synchronous=FULL",
        "postgresql": f"{values.pop('server_version')}, "
        + ", ".join(f"{name}={value}" for name, value in values.items()),
        "asyncpg": version("asyncpg"),
        "uvicorn": version("uvicorn"),
    }
