"""What a process was evaluating when its watchdog ended it, for the next process.

Each process keeps execution and template of its evaluation in a file that is mapped into memory: noting them is a copy of
some bytes, and the kernel keeps them when the process ends. The watchdog adds a stack just before the end, so a process
that is killed otherwise counts for nothing. The next process on this machine reads what dead ones left: a template that
ended `_MOST` of them fails from then on in that execution. Tested in tests/unit/wiring/test_stuck_record.py.
"""

from __future__ import annotations

import fcntl
import logging
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from noetl.private_files import make_private_folder, open_private, write_private

_log = logging.getLogger(__name__)
_MOST: Final = 2  # processes that a template of an execution may end
_KEPT: Final = 100  # templates that are remembered
_PAGE: Final = 4096


class Stuck(msgspec.Struct):
    """A template of an execution that ended processes."""

    execution_id: str
    template: str
    processes: int = 1


class StuckRecord:
    """The evaluations of this process, and those that ended earlier ones."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._page: mmap.mmap | None = None

    @contextmanager
    def kept(self) -> Iterator[int]:
        """Keep a record until the end; gives the file descriptor for the stack of the end."""
        make_private_folder(self._folder)
        own = self._folder / f"{os.getpid()}.evaluation"
        opened = open_private(own)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
            os.ftruncate(opened, _PAGE)
            os.lseek(opened, _PAGE, os.SEEK_SET)
            self._page = mmap.mmap(opened, _PAGE)
            yield opened
        finally:
            self._page = None
            with suppress(OSError):
                own.unlink()
            os.close(opened)

    def note(self, execution_id: str, template: str) -> None:
        """Note the evaluation that begins; empty texts note that it ended."""
        if self._page is None:
            return
        if not (execution_id or template):
            self._page[0] = 0
            return
        data = f"{execution_id}\0{template}\0".encode(errors="replace")
        self._page[: len(data)] = data

    def refused(self) -> frozenset[tuple[str, str]]:
        """Read what dead processes left; return executions and templates to refuse."""
        make_private_folder(self._folder)
        with open(open_private(self._folder / "lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = {(one.execution_id, one.template): one for one in self._read()}
            new = [found for path in self._folder.glob("*.evaluation") if (found := _taken(path)) is not None]
            for found in new:
                key = (found.execution_id, found.template)
                found.processes += known[key].processes if key in known else 0
                known[key] = found
                told = "A process was stuck in the template `%s` of execution %s, and ended; this happened %d times."
                _log.error(told, found.template, found.execution_id, found.processes)
            if new:
                kept = list(known.values())[-_KEPT:]
                write_private(self._folder / "stuck.json", msgspec.json.encode(kept).decode())
        return frozenset(key for key, one in known.items() if one.processes >= _MOST)

    def _read(self) -> list[Stuck]:
        try:
            return msgspec.json.decode((self._folder / "stuck.json").read_bytes(), type=list[Stuck])
        except (OSError, msgspec.MsgspecError):
            return []


def _taken(path: Path) -> Stuck | None:
    """Remove the record of a dead process; return the evaluation that it was ended in."""
    with suppress(OSError), path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # a living process holds it
        content = file.read(_PAGE + 1)
        path.unlink()
        execution_id, _, rest = content.partition(b"\0")
        template = rest.partition(b"\0")[0]
        if len(content) > _PAGE and execution_id:
            return Stuck(execution_id.decode(errors="replace"), template.decode(errors="replace"))
    return None
