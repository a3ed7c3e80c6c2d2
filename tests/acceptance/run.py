"""Runs the real `noetl` command in a child process and gives back what it did."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


def noetl(*arguments: str, cwd: Path | None = None, stdin: bytes | None = None, **environment: str) -> Ran:
    """Run `noetl` with these arguments; without colours unless the environment asks."""
    done = subprocess.run(
        [sys.executable, "-m", "noetl", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "100", **environment},
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
