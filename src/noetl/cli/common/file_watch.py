"""Waits for files to change: a look at their times a few times a second, without a library for it.

Tested in tests/acceptance/test_test_cli.py.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import typer

_LOOK_S: Final = 0.3


def changes(act: Callable[[], Callable[[], set[Path]]]) -> None:
    """Act, then again after each change of the files that it tells to look at, until Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where whoever started this has it ignored
    try:
        while True:
            files = act()
            sys.stdout.flush()
            seen = _times(files())
            typer.echo(f"noetl: watching {len(seen)} files; Ctrl-C ends it.", err=True)
            while _times(files()) == seen:
                time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        typer.echo("", err=True)


def _times(files: Iterable[Path]) -> dict[Path, int]:
    found = {}
    for file in files:
        try:
            found[file] = file.stat().st_mtime_ns
        except OSError:  # it is being replaced, or was taken away
            found[file] = 0
    return found
