"""Walls of tasks that run inside the worker: their own thread, confined.

A kind that reads or writes files in the worker does it in such a thread, which the sandbox confines like the process of
a task: the kernel judges every file that it opens, whatever its path or its links say. Tested in
tests/confinement/test_inside.py.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from noetl.worker.processes import folders, sandbox

_AGAIN_S: Final = 0.05  # between two interrupts of a job
_MOST_INTERRUPTS: Final = 200  # then it is left alone: it waits for what never comes
_OWN: Final = ("/proc", "/dev")  # the worker's own: its environment, memory and open files
_NEEDED: Final = ("/proc/self/cgroup",)  # DuckDB ends the process if it cannot read it
_Job = tuple[Callable[..., Any], tuple[Any, ...], Callable[[Any, BaseException | None], None]]


class Walls:
    """What tasks inside the worker may reach; open without a sandbox."""

    def __init__(
        self,
        mode: str = "none",
        hidden: Sequence[str] = (),
        writable: Sequence[str] = (),
        scratch: str = "",
        *,
        memory: int = 0,
        disk: int = 0,
        has_network: bool = True,
    ) -> None:
        self.is_open = mode == "none"
        self.memory = memory  # bytes; 0: no limit
        self.disk = disk  # bytes of the task's folder; 0: no limit
        self.has_network = has_network  # for libraries whose connections the worker cannot judge
        self._hidden = (*hidden, *_OWN, *([scratch] if scratch else ()))
        self._writable = tuple(writable)
        self._scratch = scratch
        self._listed = () if self.is_open else tuple(sorted(sandbox.listed_folders(self._hidden)))

    @asynccontextmanager
    async def thread(self) -> AsyncIterator[OwnThread]:
        """Start the thread of one task; its folder is removed at the end."""
        own = "" if self.is_open else tempfile.mkdtemp(prefix="inside-", dir=self._scratch or None)
        started = OwnThread(self, own)
        try:
            yield started
        finally:
            started.close()
            if own:
                folders.remove(own)

    def enter(self, own: str) -> None:
        """Confine the calling thread. Raises OSError."""
        if not self.is_open:
            sandbox.enter((own, *self._writable), self._hidden, _NEEDED)

    def seen(self, *, later: bool = False) -> tuple[int, ...]:
        """Return when the folders changed whose files are allowed one by one.

        Compare what a thread began with to what is seen later: if it differs, it may not see a new file.
        """
        return sandbox.changed_at(self._listed) if later else sandbox.seen_at(self._listed)

    def folders(self, own: str) -> list[str]:
        """Return the files and folders that a path may name, for libraries that check."""
        found = [*(own and [own]), *self._writable, *sandbox.visible((*self._hidden, "/sys"))]
        return [path + "/" if os.path.isdir(path) else path for path in map(os.path.abspath, found)]


class OwnThread:
    """The thread of one task, started by its first job; jobs run one after another."""

    def __init__(self, walls: Walls, folder: str) -> None:
        self.walls = walls
        self.folder = folder  # its own; empty without a sandbox
        self._seen = walls.seen()
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread: Thread | None = None

    async def run(self, job: Callable[..., Any], *given: Any, interrupt: Callable[[], None] | None = None) -> Any:
        """Run a job. Cancellation calls `interrupt` until the job has ended.

        An interrupt before a query has begun is ignored, so it is repeated.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def settle(answer: Any, error: BaseException | None) -> None:
            if error is not None:
                done.set_exception(error)
            else:
                done.set_result(answer)

        def tell(answer: Any, error: BaseException | None) -> None:
            with suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(settle, answer, error)

        self._jobs.put((job, given, tell))
        if self._thread is None:
            self._thread = Thread(target=self._work, name="noetl-task", daemon=True)
            self._thread.start()
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            for _ in range(_MOST_INTERRUPTS):
                if interrupt is None or done.done():
                    break
                interrupt()
                await asyncio.wait([done], timeout=_AGAIN_S)
            done.add_done_callback(lambda ended: ended.exception())  # retrieve it: the caller cancelled the job
            raise

    def folders(self) -> list[str]:
        """Return the files and folders that a path may name, for libraries that check."""
        return self.walls.folders(self.folder)

    def can_serve(self) -> bool:
        """Return whether another task of its execution may use it; empties its folder."""
        if self.folder:
            folders.empty(self.folder)
        return self._seen == self.walls.seen(later=True)

    def close(self) -> None:
        """End the thread after its last job."""
        if self._thread is not None:
            self._jobs.put(None)

    def _work(self) -> None:
        refused: BaseException | None = None
        try:
            self.walls.enter(self.folder)
        except OSError as error:
            refused = error
        while (taken := self._jobs.get()) is not None:
            job, given, tell = taken
            answer, problem = None, refused
            try:
                answer = job(*given) if refused is None else None
            except BaseException as raised:  # noqa: BLE001  raised again in the waiting task
                problem = raised
            tell(answer, problem)
            del job, given, tell, taken, answer, problem  # nothing of a job is kept while the thread waits
