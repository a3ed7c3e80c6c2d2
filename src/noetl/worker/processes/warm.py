"""A child that runs Python code, and the jobs that it was sent.

Jobs that a child has not begun wait in its socket, one message each: it finds the next one there when it has answered,
and the worker can take them back. So a job begins once, whatever becomes of the child. Tested in
tests/unit/worker/processes/test_warm.py.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from noetl.worker.processes.fork_client import Child, Output
from noetl.worker.processes.fork_server import LEFT, mark_text

_KEPT_LINE: Final = 16_384  # bytes of one line, more than a log keeps; an ellipsis is in place of the rest
_MOST_AHEAD: Final = 16  # jobs that a child was sent and has not answered
_SMALL: Final = 8_192  # bytes of a job that may wait in a socket
_GRACE_S: Final = 1.0  # for the answers of a child that is not trusted
_AHEAD_S: Final = 0.005  # how long a job may wait there, if it is as short as those before


class Lines:
    """Splits the output of a child into lines, each limited.

    The rest of a line that is too long is no line of its own: half a secret in it could not be recognised.
    """

    def __init__(self) -> None:
        self.logs: deque[Callable[[str], None]] = deque()  # of the jobs whose output comes, in order
        self.mark = int.from_bytes(os.urandom(8)) | 1  # by which a child says that another job's output begins
        self._end = mark_text(self.mark)
        self._rest = b""

    def take(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tell(line)
        self._rest = rest if len(rest) <= _KEPT_LINE else rest[: _KEPT_LINE + 1] + rest[-len(self._end) :]

    def begin(self, log: Callable[[str], None], *, is_marked: bool) -> None:
        """Expect the output of another job, after a mark or from now on."""
        if not is_marked:
            self.logs.clear()
        self.logs.append(log)

    def finish(self, log: Callable[[str], None]) -> None:
        """Emit the last line of a job, even without a line break."""
        if self.logs and self.logs[0] is log:  # else the output of the next job has begun
            if self._rest:
                self._log(self._rest)
            self._rest = b""
            self.logs[0] = _nowhere  # until the mark of the next job

    def withdraw(self, log: Callable[[str], None]) -> None:
        """Expect no output of a job: it does not run here."""
        with suppress(ValueError):
            self.logs.remove(log)

    def _tell(self, line: bytes) -> None:
        if not line.endswith(self._end):
            self._log(line)
            return
        if len(line) > len(self._end):
            self._log(line[: -len(self._end)])
        if self.logs:
            self.logs.popleft()

    def _log(self, line: bytes) -> None:
        if not self.logs:
            return
        if len(line) <= _KEPT_LINE:
            self.logs[0](line.removesuffix(b"\r").decode("utf-8", "replace"))
        else:
            self.logs[0](line[:_KEPT_LINE].decode("utf-8", "ignore") + "…")  # the cut may be inside a character


def _nowhere(text: str) -> None:
    """Ignore what comes after the end of a job."""


class Sent:
    """A job as it is sent to a child, and the answer."""

    __slots__ = ("answer", "body", "log", "number", "warm")

    def __init__(self, body: bytes, log: Callable[[str], None]) -> None:
        self.body = body
        self.log = log
        self.number = 0  # by which its answer is known
        self.warm: Warm | None = None  # the child that has it
        # The frame, empty if it cannot be read; None if the child ended.
        self.answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    def resolve(self, frame: bytes | None) -> None:
        if not self.answer.done():  # else its task was cancelled
            self.answer.set_result(frame)


class Warm:
    """A child that runs Python code, with the lines it prints."""

    def __init__(self, child: Child, output: Output, lines: Lines, sandbox: str, seen: tuple[int, ...]) -> None:
        self.child = child
        self.seen = seen
        self.output = output
        self.lines = lines
        self.jobs: deque[Sent] = deque()  # not answered, in order; it runs the first
        self.took = 0.0  # seconds of the last job
        self.is_used_up = False  # it must not serve another task
        self._freed: Callable[[Warm], None] = lambda _: None
        self._is_garbled = False  # the result of the job that runs
        self._is_held = False  # while a job is withdrawn
        self._sandbox = sandbox
        self._sent = 0
        child.listen(self._hear)
        child.status.add_done_callback(self._end)

    def tell(self, freed: Callable[[Warm], None]) -> None:
        """Call `freed` after each answer, and at the end."""
        self._freed = freed

    def use_up(self) -> None:
        """Make it serve no other task."""
        self.is_used_up = True

    def wait_s(self, pace: float) -> float:
        """Return how long a job would wait if each one takes `pace` seconds."""
        return len(self.jobs) * pace if self.jobs else 0.0

    def has_room(self, size: int, pace: float) -> bool:
        """Return whether a job of this size may wait behind those that it has."""
        if self._is_held:
            return False
        if not self.jobs:
            return True
        small = size <= _SMALL and len(self.jobs[-1].body) <= _SMALL and not self.child.is_sending
        shared = self.child.can_take_back and self._sandbox != "bwrap"  # a child in bwrap serves one task
        return small and shared and len(self.jobs) < _MOST_AHEAD and self.wait_s(pace) < _AHEAD_S

    def send(self, job: Sent) -> None:
        """Send a job; it runs after those that were sent before."""
        is_marked = bool(self.jobs)
        self.lines.begin(job.log, is_marked=is_marked)
        self.jobs.append(job)
        self._sent += 1
        job.number, job.warm = self._sent, self
        self.child.send(job.body, job.number, self.lines.mark if is_marked else 0)

    def take_back(self) -> list[Sent]:
        """Return the jobs that it has not begun, in order; they are no longer its own."""
        if not self.jobs or len(self.jobs[-1].body) > _SMALL:
            return []
        numbers = self.child.unread()
        back = [job for job in self.jobs if job.number in numbers]
        for job in back:
            self.jobs.remove(job)
            self.lines.withdraw(job.log)
            job.warm = None
        return back

    def withdraw(self, job: Sent) -> list[Sent]:
        """Return the other jobs that it has not begun; `jobs` keeps this one if it runs.

        A child answers before it begins the next job. So the answers are read after the jobs are taken back: what it
        has not answered by then is the one that it runs, and that one alone ends with it.
        """
        self._is_held = True
        back = self.take_back()
        self._hear()
        self._is_held = False
        return [other for other in back if other is not job]

    def _hear(self) -> None:
        """Read the answers that are there."""
        while (found := self.child.frame()) is not None:
            number, took_ns, frame = found
            if not frame or all(job.number != number for job in self.jobs):
                self._distrust()
                continue
            while self.jobs[0].number != number:
                self._answer(b"")  # it was lost: the code read it
            self.took = took_ns / 1e9
            self._answer(b"" if self._is_garbled else frame)
            self._is_garbled = False

    def _answer(self, frame: bytes) -> None:
        self.output.drain()
        job = self.jobs.popleft()
        is_over = not frame or frame.startswith(LEFT)
        self.is_used_up = self.is_used_up or is_over or not (self.jobs or self._is_clean())
        self.lines.finish(job.log)
        job.resolve(frame)
        self._freed(self)

    def _distrust(self) -> None:
        """End a child whose code wrote to the channel; the result of this job is lost."""
        self.is_used_up = self._is_garbled = True
        asyncio.get_running_loop().call_later(_GRACE_S, self.child.kill)
        self._freed(self)

    def _end(self, _: object) -> None:
        """Answer the job that ran when the child ended, and close what leads to it."""
        self._hear()
        self.is_used_up = True
        self.output.drain()
        if self.jobs:
            job = self.jobs.popleft()
            self.lines.finish(job.log)
            job.resolve(b"" if self._is_garbled else None)
        self._freed(self)
        self.close()

    def close(self) -> None:
        """Close what leads to the child; it has ended, or will with its nursery."""
        self.child.close()
        self.output.close()

    def _is_clean(self) -> bool:
        """Return whether the task left no process, and in a sandbox no thread."""
        if self._sandbox == "bwrap":
            return False  # its processes look like those of the sandbox
        return self.child.is_alone(one_thread=self._sandbox != "none")
