"""Runs the real `noetl` command in a child process and gives back what it did."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.preloaded import OWN, preloaded

PATIENCE_S = 120


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str


def noetl(*arguments: str, cwd: Path | None = None, stdin: bytes | None = None, **environment: str) -> Ran:
    """Run `noetl` with these arguments; without colours unless the environment asks."""
    given = {**os.environ, "COLUMNS": "100", **environment}
    if any(name.startswith(OWN) for name in environment):
        return _alone(arguments, cwd, stdin, given)
    return _forked(arguments, cwd, stdin, given)


def noetl_beside_frozen(frozen: Path, *arguments: str, cwd: Path) -> Ran:
    """Run `noetl` with a folder mounted read-only for it, which needs root."""
    return _forked(arguments, cwd, None, {**os.environ, "COLUMNS": "100"}, frozen)


def _forked(
    arguments: tuple[str, ...],
    cwd: Path | None,
    stdin: bytes | None,
    environment: Mapping[str, str],
    frozen: Path | None = None,
) -> Ran:
    with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        told.write(stdin or b"")
        told.seek(0)
        streams = [0 if stdin is None else told.fileno(), out.fileno(), err.fileno()]
        code = preloaded().run(
            arguments, streams, folder=cwd, environment=environment, patience_s=PATIENCE_S, frozen=frozen
        )
        out.seek(0)
        err.seek(0)
        return Ran(code, out.read().decode(), err.read().decode())


def _alone(arguments: tuple[str, ...], cwd: Path | None, stdin: bytes | None, environment: Mapping[str, str]) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "noetl", *arguments],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env=environment,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
