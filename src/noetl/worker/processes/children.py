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
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

import msgspec

from noetl.environ import public_variables
from noetl.model.errors import InvalidInput
from noetl.model.outcome import Outcome, failed, ok
from noetl.ports import Ended, Job
from noetl.ports.work import Masked, unmasked
from noetl.worker.processes import folders, network
from noetl.worker.processes.bounds import Bounds
from noetl.worker.processes.fork_client import Child, Nursery, Output, told
from noetl.worker.processes.fork_server import LEFT, Limits
from noetl.worker.processes.python_runner import MOST_TEXT
from noetl.worker.processes.sandbox import listed_folders, problem

_SPARE: Final = 2  # children that wait for an execution
_REFILL_S: Final = 0.005
_AT_ONCE: Final = max(2, os.cpu_count() or 2)  # of an execution; more if none of them becomes free
_LOOK_S: Final = 0.02
_TICK_NS: Final = 20_000_000  # the time of a change of a folder is known as exactly as this
_KEPT_LINE: Final = 16_384  # bytes of one line, more than a log keeps; an ellipsis is in place of the rest
_MOST_SOURCE: Final = 160  # characters of a line of code in an error
_NO_PROCESS: Final = "run fewer tasks on this machine, or raise its limits of processes and memory"
_NO_MEMORY: Final = "; the machine may have run out of memory"
_SETTINGS: Final = {
    "memory": "NOETL_TASK_MEMORY_MB",
    "processes": "NOETL_TASK_PROCESSES",
    "files": "NOETL_TASK_OPEN_FILES",
    "disk": "NOETL_TASK_DISK_MB",
    "cpu_s": "NOETL_TASK_CPU_SECONDS",
}
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
EXCEEDED: Final = {"processes": "too many processes and threads", "disk": "too much data in its folder"}


class Lines:
    """Splits the output of a child into lines, each limited.

    The rest of a line that is too long is no line of its own: half a secret in it could not be recognised.
    """

    def __init__(self) -> None:
        self.log: Callable[[str], None] = lambda _: None
        self._rest = b""

    def take(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tell(line)
        self._rest = rest[: _KEPT_LINE + 1]

    def flush(self) -> None:
        """Emit the last line, even without a line break."""
        if self._rest:
            self._tell(self._rest)
            self._rest = b""

    def _tell(self, line: bytes) -> None:
        if len(line) <= _KEPT_LINE:
            self.log(line.removesuffix(b"\r").decode("utf-8", "replace"))
        else:
            self.log(line[:_KEPT_LINE].decode("utf-8", "ignore") + "…")  # the cut may be inside a character


class Warm:
    """A child that runs Python code, with the lines it prints."""

    def __init__(self, child: Child, output: Output, lines: Lines, sandbox: str, seen: tuple[int, ...]) -> None:
        self.child = child
        self.seen = seen
        self.output = output
        self.lines = lines
        self.is_used_up = False  # it must not serve another task
        self._sandbox = sandbox

    async def run(self, job: Job, log: Callable[[str], None], masked: Masked) -> Outcome:
        self.lines.log = log
        try:
            await self.child.send(msgspec.structs.asdict(job))
        except OSError:
            frame = None
        else:
            frame = await self.child.receive()
        gone = _gone(await self.child.end(), self.child) if frame is None else None
        self.output.drain()
        self.lines.flush()
        if gone is not None or frame is None:
            return gone or _garbled()
        self.is_used_up = frame.startswith(LEFT) or not self._is_clean()
        try:
            return _outcome(await told(frame), masked)
        except (ValueError, KeyError, TypeError, AttributeError):
            self.is_used_up = True
            return _garbled()

    def _is_clean(self) -> bool:
        """Return whether the task left no process, and in a sandbox no thread."""
        if self._sandbox == "bwrap":
            return False  # its processes look like those of the sandbox
        return self.child.is_alone(one_thread=self._sandbox != "none")


def _outcome(answer: Mapping[str, Any], masked: Masked) -> Outcome:
    error = answer.get("error")
    if error is None:
        return ok(answer["result"])
    names = ("code", "retryable", "retry_after", "details", "sent")
    more = {name: error[name] for name in names if name in error}
    where = error.get("where")
    if where is not None:
        more["where"] = _short_sources(where, masked)
        if "frames" in where:
            more["where"]["frames"] = [_short_sources(frame, masked) for frame in where["frames"]]
    message = error.get("before", "") + _short(error["said"], MOST_TEXT, masked) + error.get("after", "")
    outcome = failed(error["kind"], message, class_=error.get("class", ""), **more)
    if "traceback" not in error:
        return outcome
    stack = "".join(_short(part, MOST_TEXT, masked) for part in error["traceback"])
    py = {"exception_type": error["exception_type"], "traceback": stack}
    return msgspec.structs.replace(outcome, helpers={"py": py})


def _short_sources(place: Mapping[str, Any], masked: Masked) -> dict[str, Any]:
    return {**place, "source": _short(place["source"], _MOST_SOURCE, masked)}


def _short(text: str, most: int, masked: Masked) -> str:
    """Return at most `most` characters of a text from a child.

    A child that cut it gives one character more than it may.
    """
    if len(text) <= most:
        return text
    return masked(text, "end" if len(text) > MOST_TEXT else "")[:most] + "…"


def _garbled() -> Outcome:
    message = "the code wrote to a file that is not its own, so its result cannot be read"
    return failed("python", message, code="PY_GARBLED")


def _gone(status: int, child: Child) -> Outcome:
    if child.refused:
        text = f"no process could be started for the code: {os.strerror(child.refused)}; {_NO_PROCESS}"
        return failed("python", text, code="PY_NOT_STARTED", retryable=True)
    exceeded = child.exceeded
    why, code = reason(status)
    why = f"was ended for {EXCEEDED[exceeded]}" if exceeded else why
    why += f" ({_SETTINGS[exceeded]} changes the limit)" if exceeded else ""
    text = f"the process that ran the code {why} before it gave a result"
    return failed("python", text, code=f"PY_{code}", details={"returncode": status})


def reason(status: int) -> tuple[str, str]:
    """Describe how a process ended: for people, and as a code."""
    if status >= 0:
        return f"ended itself with exit code {status}", f"EXIT_{status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"SIG{-status}"
    return f"was killed by {name}" + (_NO_MEMORY if name == "SIGKILL" else ""), name


class _Crew:
    """The children of an execution that run a task, and the tasks that wait for one.

    A process for each of many short tasks costs more than they do: a task waits while others become free.
    """

    def __init__(self) -> None:
        self.busy: set[Warm] = set()
        self.was_released = False  # a child, since the last look
        self.look: asyncio.TimerHandle | None = None
        self.waiting: deque[asyncio.Future[Warm]] = deque()

    def is_waited_for(self) -> bool:
        while self.waiting and self.waiting[0].done():  # it was cancelled
            self.waiting.popleft()
        return bool(self.waiting)

    def queue(self) -> asyncio.Future[Warm]:
        """Add a task that waits."""
        self.waiting.append(asyncio.get_running_loop().create_future())
        return self.waiting[-1]

    def give(self, made: Callable[[], Warm]) -> bool:
        """Serve the task that waits longest: a child, or why there is none."""
        waiter = self.waiting.popleft()
        try:
            warm = made()
        except Exception as error:  # noqa: BLE001 - the waiting task raises it
            waiter.set_exception(error)
            return False
        self.busy.add(warm)
        waiter.set_result(warm)
        return True

    def is_stuck(self) -> bool:
        """Return whether all children run, and none became free since the last look."""
        return not self.was_released and all(warm.child.pid for warm in self.busy)


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
        self._crews: dict[str, _Crew] = {}  # by execution, while a task of it runs
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
                return f"{shown} ({_SETTINGS[name]} changes it)"
        return ""

    async def python(
        self, execution_id: str, job: Job, log: Callable[[str], None], masked: Masked = unmasked
    ) -> Outcome:
        """Run code in a warm child of this execution only; every printed line is logged."""
        warm = await self._acquire(execution_id)
        try:
            outcome = await warm.run(job, log, masked)
        except BaseException:
            warm.is_used_up = True
            raise
        finally:
            try:
                if warm.child.is_over:
                    self._discard(warm)
                elif warm.is_used_up:
                    await asyncio.shield(self._later(self._kill(warm)))  # what it left ends with the task
            finally:
                self._release(execution_id, warm)
        return self._with_limit(outcome)

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
        details = {**(error.details or {}), "limit_mb": self._bounds.memory >> 20, "setting": _SETTINGS["memory"]}
        return msgspec.structs.replace(outcome, error=msgspec.structs.replace(error, message=message, details=details))

    async def _acquire(self, execution_id: str) -> Warm:
        """Return a child of the execution, a new one, or one that becomes free soon."""
        crew = self._crews.get(execution_id)
        warm = self._idle_one(execution_id)
        if warm is None and (crew is None or len(crew.busy) < _AT_ONCE):
            warm = self._new()
        if warm is not None:
            self._crews.setdefault(execution_id, _Crew()).busy.add(warm)
            return warm
        assert crew is not None
        waiter = crew.queue()
        self._look_later(crew)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._release(execution_id, waiter.result())
            raise

    def _idle_one(self, execution_id: str) -> Warm | None:
        idle = self._idle.pop(execution_id, [])
        while idle:
            found = idle.pop()
            if idle:
                self._idle[execution_id] = idle
            if self._is_usable(found):
                return found
        return None

    def _new(self) -> Warm:
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
            self._discard(warm)
        elif warm.seen != self._seen():
            self._later(self._kill(warm))
        else:
            return True
        return False

    def _seen(self) -> tuple[int, ...]:
        """Return when the folders changed whose files are allowed one by one."""
        found = []
        for folder in self._listed:
            with contextlib.suppress(OSError):
                found.append(os.stat(folder).st_mtime_ns)
        return tuple(found)

    def _look_later(self, crew: _Crew) -> None:
        if crew.look is None:
            crew.look = asyncio.get_running_loop().call_later(_LOOK_S, self._look, crew)

    def _look(self, crew: _Crew) -> None:
        """Double the children of an execution whose tasks wait, and none became free."""
        crew.look = None
        if crew.is_stuck():
            for _ in range(max(1, len(crew.busy))):
                if crew.is_waited_for():
                    crew.give(self._new)
        crew.was_released = False
        if crew.is_waited_for():
            self._look_later(crew)

    def _release(self, execution_id: str, warm: Warm) -> None:
        """Take a child back: for a task that waits, for a later one, or for none."""
        crew = self._crews[execution_id]
        crew.was_released = True
        crew.busy.discard(warm)
        usable = not warm.is_used_up and not warm.child.is_over
        if crew.is_waited_for() and crew.give(lambda: warm if usable else self._new()):
            return
        if not crew.busy and not crew.is_waited_for():
            del self._crews[execution_id]
        if usable:
            self._keep(execution_id, warm)

    def _keep(self, execution_id: str, warm: Warm) -> None:
        warm.lines.log = lambda _: None
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
        lines, seen = Lines(), self._seen()
        if seen and time.time_ns() - max(seen) < _TICK_NS:
            seen = (0,)  # a change now would not be seen: it serves a task at once, or none
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
        warm.output.drain()
        warm.lines.flush()
        self._discard(warm)

    def _discard(self, warm: Warm) -> None:
        warm.child.close()
        warm.output.close()

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
            with contextlib.suppress(OSError):
                await child.send({"argv": list(argv), "env": {**public_variables(), **env}, "cwd": cwd})
            refused = await child.receive()
            status = await child.end()
            await asyncio.gather(*(output.end() for output in outputs))
        finally:
            feeding.cancel()
            await asyncio.shield(self._later(_end(child, outputs)))
            out.lines.flush()
            err.lines.flush()
        if refused is not None:
            answer = await told(refused)
            raise OSError(answer["errno"], answer["message"])
        if child.refused:
            raise OSError(child.refused, os.strerror(child.refused))
        why = f"{EXCEEDED[child.exceeded]} ({_SETTINGS[child.exceeded]} changes it)" if child.exceeded else ""
        return Ended(status, bytes(out.data), bytes(err.data), out.cut or err.cut, why)

    async def close(self) -> None:
        """End every child, and wait for it."""
        if self._refilling is not None:
            self._refilling.cancel()
        await self._nursery.close()
        for warm in [*self._fresh, *(one for idle in self._idle.values() for one in idle)]:
            self._discard(warm)
        self._fresh.clear()
        self._idle.clear()
        for crew in self._crews.values():
            if crew.look is not None:
                crew.look.cancel()
            while crew.is_waited_for():
                crew.give(self._new)  # which raises that the pool is closed
        if self._endings:
            await asyncio.gather(*self._endings)
        if self.scratch:
            folders.remove(self.scratch)


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
        if log is not None:
            self.lines.log = lambda text: log(text, level)
        self._most = most

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
