"""Bounds of a task's processes: their number, open files, disk, processor time.

The kernel keeps the bounds of one process. Those of all processes of a task are kept by a `pids` control group where
this user may create one, and by a look at the process tree and the task's folder every second. Only the standard
library is used, because children load it. Tested in tests/unit/worker/processes/test_bounds.py.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_GROUPS: Final = Path("/sys/fs/cgroup")
_GRACE_S: Final = 5  # of processor time between the signal that can be caught and the one that cannot


class Bounds(NamedTuple):
    """Bounds of a task's processes; 0: none."""

    memory: int = 0  # bytes of data of each process
    processes: int = 0  # and threads, of all together
    files: int = 0  # open, of each process
    disk: int = 0  # bytes of the largest file, and of the task's own folder
    cpu_s: int = 0  # processor time of each process


def bound_this_process(bounds: Bounds) -> None:
    """Set the limits of this process and of all that it starts, except of memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if bounds.files:
        _lower(resource.RLIMIT_NOFILE, bounds.files, bounds.files)
    if bounds.disk:
        _lower(resource.RLIMIT_FSIZE, bounds.disk, bounds.disk)
    if bounds.cpu_s:
        _lower(resource.RLIMIT_CPU, bounds.cpu_s, bounds.cpu_s + _GRACE_S)


def bound_user(processes: int) -> None:
    """Limit the processes of this user: those that run, and these more.

    The limit of the kernel is one per user, and does not hold for root.
    """
    if processes and os.getuid() != 0:
        running = sum(_threads(pid) for pid in _pids() if _owner(pid) == os.getuid())
        _lower(resource.RLIMIT_NPROC, running + processes, running + processes)


def _lower(limit: int, soft: int, hard: int) -> None:
    """Set a limit, unless a lower one holds already."""
    given = resource.getrlimit(limit)[1]
    if given != resource.RLIM_INFINITY:
        soft, hard = min(soft, given), min(hard, given)
    resource.setrlimit(limit, (soft, hard))


class PidGroups:
    """A `pids` control group per task, where this process may create them."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._place = next((place for place in _places() if self._works(place)), None)

    @property
    def are_here(self) -> bool:
        return self._place is not None

    def enter(self, number: int, most: int) -> None:
        """Move this process into the group of its task, which is created."""
        if self._place is not None:
            folder = self._folder(self._place, number)
            folder.mkdir()
            (folder / "pids.max").write_text(str(most))
            (folder / "cgroup.procs").write_text("0")

    def remove(self, number: int) -> None:
        """Remove the group of a task that has ended."""
        if self._place is not None:
            with suppress(OSError):
                self._folder(self._place, number).rmdir()

    def _folder(self, place: Path, number: int) -> Path:
        return place / f"noetl-{self._owner}-{number}"

    def _works(self, place: Path) -> bool:
        folder = self._folder(place, 0)
        try:
            folder.mkdir()
        except OSError:
            return False
        try:
            (folder / "pids.max").write_text("1")
        except OSError:
            return False
        else:
            return True
        finally:
            folder.rmdir()


def _places() -> Iterator[Path]:
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "pids" in controllers.split(","):
                yield _GROUPS / ("pids" if controllers else "") / path.lstrip("/")


def children_of(pid: int) -> set[int]:
    """Return the processes that a process has started, or adopted."""
    found: set[int] = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found.update(map(int, Path(f"/proc/{pid}/task/{thread}/children").read_text().split()))
    except FileNotFoundError:
        if os.path.exists(f"/proc/{pid}/task"):  # a kernel without these lists
            return {one for one in _pids() if _parent(one) == pid}
    except OSError:
        pass
    return found


def descendants(pid: int) -> list[int]:
    """Return all processes below one, parents first."""
    found, waiting = [], [pid]
    while waiting:
        for child in children_of(waiting.pop()):
            if child not in found:
                found.append(child)
                waiting.append(child)
    return found


def tree_size(pid: int) -> int:
    """Return the number of threads of a process and of all below it."""
    return sum(map(_threads, (pid, *descendants(pid))))


class ProcessFiles:
    """What the kernel says of a process, in files that stay open."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._files: list[int] = []
        with suppress(OSError):  # a kernel without the second file, or the process is gone
            for path in (f"/proc/{pid}/stat", f"/proc/{pid}/task/{pid}/children"):
                self._files.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def is_alone(self, *, one_thread: bool) -> bool:
        """Return whether the process has no child, and if asked, no second thread."""
        try:
            threads = int(os.pread(self._files[0], 1024, 0).rpartition(b")")[2].split()[17])
            if threads == 1 and len(self._files) == 2:
                return not os.pread(self._files[1], 1, 0)
        except (OSError, IndexError):
            return False  # it is gone
        return (threads == 1 or not one_thread) and not children_of(self._pid)

    def close(self) -> None:
        while self._files:
            os.close(self._files.pop())


def kill_tree(pid: int) -> None:
    """Kill a process and everything below it."""
    for one in (pid, *descendants(pid)):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(one, signal.SIGKILL)


def folder_size(folder: str, enough: int) -> int:
    """Return the bytes on disk of a folder's files; stop counting at `enough`."""
    size, waiting = 0, [folder]
    while waiting and size <= enough:
        with suppress(OSError):
            for entry in os.scandir(waiting.pop()):
                with suppress(OSError):
                    about = entry.stat(follow_symlinks=False)
                    size += max(about.st_blocks * 512, 512)  # a file without content costs as well
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return size


def _pids() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []


def _threads(pid: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def _owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


def _parent(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])
