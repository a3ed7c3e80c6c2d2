"""What a process was evaluating when its watchdog ended it, for the next process.

Each process keeps delivery and template of its evaluation in a file that is mapped into memory: noting them is a copy of
some bytes, and the kernel keeps them when the process ends. The watchdog adds a stack just before the end, so a process
that is killed otherwise counts for nothing. The next process on this machine reads what dead ones left: a delivery that
ended `_MOST` of them is refused from then on, and becomes a dead letter. Tested in tests/unit/wiring/test_stuck_record.py.
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
_MOST: Final = 2  # processes that a delivery may end
_KEPT: Final = 100  # deliveries that are remembered
_PAGE: Final = 4096
_SHOWN: Final = 500  # characters of a template


class Stuck(msgspec.Struct):
    """A delivery that ended processes."""

    delivery: str
    template: str
    processes: int = 1


class StuckRecord:
    """The evaluations of this process, and the deliveries that ended earlier ones."""

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

    def note(self, delivery: str, template: str) -> None:
        """Note the evaluation that begins; empty texts note that it ended."""
        if self._page is not None:
            data = f"{delivery}\0{template[:_SHOWN]}\0".encode(errors="replace") if template else b"\0\0"
            self._page[: len(data)] = data

    def refused(self) -> dict[str, str]:
        """Read what dead processes left; return deliveries to refuse, with templates."""
        make_private_folder(self._folder)
        with open(open_private(self._folder / "lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = {one.delivery: one for one in self._read()}
            new = [found for path in self._folder.glob("*.evaluation") if (found := _taken(path)) is not None]
            for found in new:
                found.processes += known[found.delivery].processes if found.delivery in known else 0
                known[found.delivery] = found
                told = "A process was ended by its watchdog, stuck in the template `%s` of %s; it is process %d."
                _log.error(told, found.template, found.delivery, found.processes)
            if new:
                kept = list(known.values())[-_KEPT:]
                write_private(self._folder / "stuck.json", msgspec.json.encode(kept).decode())
        return {one.delivery: one.template for one in known.values() if one.processes >= _MOST}

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
        delivery, _, rest = content.partition(b"\0")
        template = rest.partition(b"\0")[0]
        if len(content) > _PAGE and delivery:
            return Stuck(delivery.decode(errors="replace"), template.decode(errors="replace"))
    return None
