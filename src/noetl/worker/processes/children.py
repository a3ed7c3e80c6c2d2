"""Child processes for tasks: warm ones for Python code, and programs.

A warm child serves the tasks of one execution, one at a time, and is replaced by a fresh one for the next execution. A
program has its own process group. A child that is cancelled, crashes or runs too long is killed with everything it
started; the worker never is. Tested in tests/unit/worker/processes/test_children.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from math import inf
from typing import Any, Final

import msgspec

from noetl.blobs import pieces
from noetl.environ import public_variables
from noetl.model.errors import InvalidInput
from noetl.model.outcome import Outcome
from noetl.ports import Ended, Job
from noetl.ports.work import Masked, unmasked
from noetl.worker.processes import folders, network
from noetl.worker.processes.bounds import Bounds
from noetl.worker.processes.fork_client import Child, Nursery, Output, told
from noetl.worker.processes.fork_server import Limits
from noetl.worker.processes.outcomes import EXCEEDED, SETTINGS, garbled, gone, outcome_of
from noetl.worker.processes.sandbox import changed_at, listed_folders, problem, seen_at
from noetl.worker.processes.warm import Lines, Sent, Warm

_SPARE: Final = 2  # children that wait for an execution
_REFILL_S: Final = 0.005
_AT_ONCE: Final = max(2, os.cpu_count() or 2)  # of an execution; more if none of them becomes free
_LOOK_S: Final = 0.02
_SOON_S: Final = 0.0005  # a task that waits no longer needs no other child
_SIGNS: Final = {  # what programs say when they reach a bound
    "memory": "MemoryError|out of memory|cannot allocate memory|memory exhausted|bad_alloc",
    "processes": "resource temporarily unavailable|can't start new thread|cannot fork|fork failed",
    "files": "too many open files",
    "disk": "file too large|file size limit exceeded",
    "cpu_s": "SIGXCPU|signal 24|cpu time limit exceeded",
}


_NO_SOCKET: Final = "name resolution|socket|connect|Permission denied|unreachable"
_NO_FILE: Final = "Permission denied|Operation not permitted|Read-only file system"
_WRITE: Final = "NOETL_SANDBOX_WRITE"
_BOUNDS: Final = Bounds(memory=4 << 30)


class _Crew:
    """The children that run tasks of one execution, and the tasks that wait.

    A process for each of many short tasks costs more than they do: a task waits while others become free, in the socket
    of a child if those before it are short. If none becomes free, there will be more children.
    """

    def __init__(self, execution_id: str, pool: ChildPool) -> None:
        self.children: list[Warm] = []
        self.waiting: deque[Sent] = deque()
        self.execution_id = execution_id
        self._pool = pool
        self._pace = inf  # seconds of a task, by the last ones
        self._was_freed = False  # a child, since the last look
        self._look: asyncio.TimerHandle | None = None

    @property
    def is_over(self) -> bool:
        return not self.children and not self.waiting

    def add(self, job: Sent) -> None:
        self.waiting.append(job)
        self._dispatch()

    def leave(self, warm: Warm) -> None:
        """Go on without a child; what it has not begun is run by others."""
        if warm in self.children:
            self.children.remove(warm)
        self.put_back(warm.take_back())

    def put_back(self, jobs: list[Sent]) -> None:
        self.waiting.extendleft(reversed(jobs))
        self._dispatch()

    def close(self) -> None:
        if self._look is not None:
            self._look.cancel()

    def _dispatch(self) -> None:
        while self.waiting:
            job = self.waiting[0]
            try:
                warm = None if job.answer.done() else self._place(job)
            except Exception as error:  # noqa: BLE001 - the waiting task raises it
                job.answer.set_exception(error)
                warm = None
            if warm is None and not job.answer.done():
                break
            self.waiting.popleft()
            if warm is not None:
                warm.send(job)
        self._look_later()

    def _place(self, job: Sent) -> Warm | None:
        """Return the child for a job: one that has it soon, a free or new one, or none."""
        size, pace = len(job.body), self._pace
        room = [warm for warm in self.children if warm.has_room(size, pace)]
        best = min(room, key=lambda warm: len(warm.jobs), default=None)
        if best is not None and best.wait_s(pace) < _SOON_S:
            return best
        free = self._pool.idle_one(self.execution_id)
        if free is None and len(self.children) < _AT_ONCE:
            free = self._pool.new()
        return best if free is None else self._join(free)

    def _join(self, warm: Warm) -> Warm:
        warm.tell(self._freed)
        self.children.append(warm)
        return warm

    def _freed(self, warm: Warm) -> None:
        """Use a child that has answered for a task that waits, or keep it."""
        self._was_freed = True
        self._pace = warm.took if self._pace == inf else (self._pace + warm.took) / 2
        if warm.is_used_up:
            self.leave(warm)
        elif warm.jobs or self.waiting:
            self._dispatch()
        elif warm in self.children:
            self.children.remove(warm)
            self._pool.keep(self.execution_id, warm)
        if self.is_over:
            self._pool.forget(self)

    def _look_later(self) -> None:
        if self._look is None and (self.waiting or any(len(warm.jobs) > 1 for warm in self.children)):
            self._look = asyncio.get_running_loop().call_later(_LOOK_S, self._look_at)

    def _look_at(self) -> None:
        """Double the children if none became free: the tasks that wait begin now."""
        self._look = None
        if not self._was_freed and all(warm.child.pid for warm in self.children):
            self._pace = _LOOK_S
            back = [job for warm in self.children if len(warm.jobs) > 1 for job in warm.take_back()]
            self.waiting.extendleft(reversed(back))
            for _ in range(min(max(1, len(self.children)), len(self.waiting))):
                with contextlib.suppress(RuntimeError):  # the pool is closed
                    self._join(self._pool.new())
        self._was_freed = False
        self._dispatch()


class ChildPool:
    """The child processes of one worker."""

    def __init__(
        self,
        *,
        bounds: Bounds = _BOUNDS,
        kept: int = 8,
        most_output: int = 32 << 20,
        sandbox: str = "none",
        hidden: Sequence[str] = (),
        writable: Sequence[str] = (),
        has_network: bool = True,
    ) -> None:
        if not has_network and network.problem() is not None:
            raise InvalidInput(
                f"Tasks are to have no network, and this machine cannot keep them from it: {network.problem()}. Set "
                "NOETL_TASK_NETWORK to allow."
            )
        missing = problem(sandbox)
        if missing is not None:
            raise InvalidInput(
                f"tasks are to run in the sandbox `{sandbox}`, and it cannot be made: {missing}. Choose another with "
                "NOETL_SANDBOX, or run the worker where it can."
            )
        # The folders of tasks: the nursery removes each with its process, and this one at its end.
        self.scratch = tempfile.mkdtemp(prefix="noetl-tasks-") if sandbox != "none" else ""
        self._nursery = Nursery(Limits(bounds, sandbox, tuple(hidden), tuple(writable), self.scratch, has_network))
        self._has_network = has_network
        self._listed = listed_folders((*hidden, self.scratch)) if sandbox == "landlock" else ()
        self._bounds = bounds
        self._sandbox = sandbox
        self._kept = kept
        self._most_output = most_output
        self._fresh: list[Warm] = []
        self._idle: dict[str, list[Warm]] = {}  # by execution, the longest unused first
        self._crews: dict[str, _Crew] = {}  # by execution, while tasks of it run
        self._endings: set[asyncio.Task[None]] = set()
        self._refilling: asyncio.TimerHandle | None = None

    def warm_up(self) -> None:
        """Start children before a task needs one."""
        self._refilling = None
        while len(self._fresh) < _SPARE and not self._nursery.is_closed:
            self._fresh.append(self._spawn())

    def warm_up_soon(self, after_s: float = _REFILL_S) -> None:
        """Start spare children later: not while a worker or a task begins."""
        loop = asyncio.get_running_loop()
        if self._refilling is not None and self._refilling.when() > loop.time() + after_s:
            self._refilling.cancel()
            self._refilling = None
        if self._refilling is None:
            self._refilling = loop.call_later(after_s, self.warm_up)

    def hint(self, text: str) -> str:
        """Return what to add to an error's text: the setting it is about, or nothing."""
        limit = self._limit(text)
        if limit:
            return f"; its limit is {limit}"
        if not self._has_network and re.search(_NO_SOCKET, text, re.IGNORECASE):
            return "; tasks on this worker have no network (NOETL_TASK_NETWORK)"
        if self._sandbox != "none" and re.search(_NO_FILE, text, re.IGNORECASE):
            return f"; tasks on this worker are confined ({_WRITE} names the folders that they may write to)"
        return ""

    def _limit(self, text: str) -> str:
        for name, signs in _SIGNS.items():
            bound = getattr(self._bounds, name)
            if bound and re.search(signs, text, re.IGNORECASE):
                shown = f"{bound >> 20:,} MiB" if name in ("memory", "disk") else f"{bound:,}"
                return f"{shown} ({SETTINGS[name]} changes it)"
        return ""

    async def python(
        self, execution_id: str, job: Job, log: Callable[[str], None], masked: Masked = unmasked
    ) -> Outcome:
        """Run code in a warm child of this execution only; every printed line is logged."""
        job_sent = Sent(await pieces.encoded(msgspec.structs.asdict(job)), log)
        crew = self._crews.get(execution_id) or self._crews.setdefault(execution_id, _Crew(execution_id, self))
        crew.add(job_sent)
        try:
            frame = await job_sent.answer
        except BaseException:
            await asyncio.shield(self._later(self._withdraw(crew, job_sent)))
            raise
        finally:
            if crew.is_over:
                self.forget(crew)
        warm = job_sent.warm
        assert warm is not None
        outcome = gone(await warm.child.end(), warm.child) if frame is None else await _read(frame, masked)
        if warm.is_used_up and not warm.jobs:
            await asyncio.shield(self._later(self._kill(warm)))  # what it left ends with the task
        return self._with_limit(outcome)

    async def _withdraw(self, crew: _Crew, job: Sent) -> None:
        """Run a job no further; if it has begun, end its child."""
        warm = job.warm
        if warm is None:
            with contextlib.suppress(ValueError):
                crew.waiting.remove(job)
        elif job in warm.jobs:
            back = warm.withdraw(job)
            runs = job in warm.jobs
            if runs:
                warm.use_up()
                crew.leave(warm)
            crew.put_back(back)
            if runs:
                await self._kill(warm)

    def _with_limit(self, outcome: Outcome) -> Outcome:
        """Name the limit in the error of code that reached it."""
        error = outcome.error
        hint = self.hint(f"{error.code} {error.message}") if error is not None else ""
        if error is None or not hint:
            return outcome
        if "MemoryError" not in error.code:
            message = error.message + hint
            return msgspec.structs.replace(outcome, error=msgspec.structs.replace(error, message=message))
        reason = f"the task needs more memory than its limit of {self._limit('MemoryError')}"
        silent = "MemoryError: no message"
        message = error.message.replace(silent, f"MemoryError: {reason}")
        message = message if message != error.message else f"{message}; {reason}"
        details = {**(error.details or {}), "limit_mb": self._bounds.memory >> 20, "setting": SETTINGS["memory"]}
        return msgspec.structs.replace(outcome, error=msgspec.structs.replace(error, message=message, details=details))

    def idle_one(self, execution_id: str) -> Warm | None:
        """Return a child of the execution that has nothing to do."""
        idle = self._idle.pop(execution_id, [])
        while idle:
            found = idle.pop()
            if idle:
                self._idle[execution_id] = idle
            if self._is_usable(found):
                return found
        return None

    def new(self) -> Warm:
        """Return a child that no execution has used."""
        self.warm_up_soon()
        while self._fresh:
            found = self._fresh.pop(0)
            if self._is_usable(found):
                return found
        return self._spawn()

    def _is_usable(self, warm: Warm) -> bool:
        """Return whether a child can serve a task; one that cannot is ended.

        Landlock allows the files that exist when a process is confined. A child from before a file came does not see it.
        """
        if warm.child.is_over:
            return False
        if not warm.is_used_up and warm.seen == changed_at(self._listed):
            return True
        self._later(self._kill(warm))
        return False

    def forget(self, crew: _Crew) -> None:
        """Drop the crew of an execution that runs no task."""
        crew.close()
        if self._crews.get(crew.execution_id) is crew:
            del self._crews[crew.execution_id]

    def keep(self, execution_id: str, warm: Warm) -> None:
        """Keep a child for a later task of its execution; end the longest unused one."""
        warm.tell(lambda _: None)
        idle = self._idle.pop(execution_id, [])
        self._idle[execution_id] = [*idle, warm]
        while sum(map(len, self._idle.values())) > self._kept:
            oldest = next(iter(self._idle))
            unused = self._idle[oldest].pop(0)
            if not self._idle[oldest]:
                del self._idle[oldest]
            self._later(self._kill(unused))

    def _spawn(self) -> Warm:
        self._nursery.start()
        lines, seen = Lines(), seen_at(self._listed)
        output = Output(lines.take)
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            child = self._nursery.spawn(nothing, output.child_end, output.child_end, is_warm=True)
        finally:
            os.close(nothing)
            os.close(output.child_end)
        return Warm(child, output, lines, self._sandbox, seen)

    def _later(self, ending: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """End something in its own task: the caller's cancellation must not stop it."""
        task = asyncio.get_running_loop().create_task(ending)
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)
        return task

    async def _kill(self, warm: Warm) -> None:
        warm.child.kill()
        await warm.child.end()

    async def command(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | None = None,
        stdin: bytes = b"",
        log: Callable[[str, str], None] | None = None,
    ) -> Ended:
        """Run a program in its own process group. Raises OSError if it cannot start."""
        self._nursery.start()
        out, err = (_Kept(self._most_output, log, level) for level in ("info", "warning"))
        outputs = [Output(out.take), Output(err.take)]
        given, feed = os.pipe()
        try:
            child = self._nursery.spawn(given, *(output.child_end for output in outputs), is_warm=False)
        finally:
            for fd in (given, *(output.child_end for output in outputs)):
                os.close(fd)
        feeding = asyncio.get_running_loop().create_task(_feed(feed, stdin))
        feeding.add_done_callback(lambda _: os.close(feed))  # also where it is cancelled before it begins
        try:
            child.send(msgspec.json.encode({"argv": list(argv), "env": {**public_variables(), **env}, "cwd": cwd}))
            refused = await child.receive()
            status = await child.end()
            await asyncio.gather(*(output.end() for output in outputs))
        finally:
            feeding.cancel()
            await asyncio.shield(self._later(_end(child, outputs)))
            out.end()
            err.end()
        if refused is not None:
            answer = await told(refused)
            raise OSError(answer["errno"], answer["message"])
        if child.refused:
            raise OSError(child.refused, os.strerror(child.refused))
        why = f"{EXCEEDED[child.exceeded]} ({SETTINGS[child.exceeded]} changes it)" if child.exceeded else ""
        return Ended(status, bytes(out.data), bytes(err.data), out.cut or err.cut, why)

    async def close(self) -> None:
        """End every child, and wait for it."""
        if self._refilling is not None:
            self._refilling.cancel()
        await self._nursery.close()
        for warm in [*self._fresh, *(one for idle in self._idle.values() for one in idle)]:
            warm.close()
        self._fresh.clear()
        self._idle.clear()
        for crew in self._crews.values():
            crew.close()
        await asyncio.sleep(0)  # children have ended: their tasks learn it
        if self._endings:
            await asyncio.gather(*self._endings)
        if self.scratch:
            folders.remove(self.scratch)


async def _read(frame: bytes, masked: Masked) -> Outcome:
    try:
        return outcome_of(await told(frame), masked)
    except (ValueError, KeyError, TypeError, AttributeError):
        return garbled()


async def _end(child: Child, outputs: Sequence[Output]) -> None:
    child.kill()
    await child.end()
    child.close()
    for output in outputs:
        output.drain()
        output.close()


class _Kept:
    """Output of a program up to a size; the rest is discarded, so it never blocks."""

    def __init__(self, most: int, log: Callable[[str, str], None] | None, level: str) -> None:
        self.data = bytearray()
        self.cut = False
        self.lines = Lines()
        self._log = (lambda text: log(text, level)) if log is not None else None
        if self._log is not None:
            self.lines.begin(self._log, is_marked=False)
        self._most = most

    def end(self) -> None:
        if self._log is not None:
            self.lines.finish(self._log)

    def take(self, data: bytes) -> None:
        self.lines.take(data)
        room = self._most - len(self.data)
        self.data += data[:room]
        self.cut = self.cut or len(data) > room


async def _feed(fd: int, data: bytes) -> None:
    """Write to a program's standard input; it is no error if it reads none of it."""
    loop = asyncio.get_running_loop()
    os.set_blocking(fd, False)
    room = asyncio.Event()
    try:
        while data:
            try:
                data = data[os.write(fd, data) :]
            except BlockingIOError:
                room.clear()
                loop.add_writer(fd, room.set)
                await room.wait()
                loop.remove_writer(fd)
    except BrokenPipeError:
        pass
    finally:
        loop.remove_writer(fd)
