"""A `noetl` process that tests can kill, freeze and restart.

It is forked from a loaded one.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from time import monotonic, sleep

from tests.preloaded import Command, preloaded_for

PATIENCE_S = 60.0


class Process:
    """One process, and what it writes to standard error over all its lives."""

    def __init__(self, folder: Path, name: str, *arguments: str, **environment: str) -> None:
        self.name = name
        self._folder = folder
        self._arguments = arguments
        self._environment = {**os.environ, **environment}
        self._file = folder / f"{name}.log"
        self._file.touch()
        self._running: Command | None = None
        self.kills = 0

    @property
    def log(self) -> str:
        return self._file.read_text(errors="replace")

    @property
    def pid(self) -> int:
        assert self._running is not None
        return self._running.pid

    @property
    def code(self) -> int | None:
        """What it ended with; None while it runs."""
        return None if self._running is None else self._running.poll()

    def start(self) -> None:
        """Start it unless it runs."""
        if self._running is not None and self.code is None:
            return
        with self._file.open("ab") as log:
            loaded = preloaded_for(self._environment)
            self._running = loaded.start_logged(self._arguments, self._folder, self._environment, log.fileno())

    def until(self, pattern: str, times: int = 1) -> str:
        """Wait for the n-th occurrence of a line over all restarts; return the last."""
        end = monotonic() + PATIENCE_S
        while len(found := re.findall(pattern, self.log)) < times:
            assert monotonic() < end, f"{self.name} does not say {pattern}:\n{self.log}"
            assert self.code is None, f"{self.name} ended with {self.code}:\n{self.log}"
            sleep(0.02)
        return str(found[-1])

    def kill(self) -> None:
        """End it without a word."""
        self._send(signal.SIGKILL)
        self.kills += 1
        if self._running is not None:
            self._running.wait()

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    def ask_to_end(self) -> None:
        self._send(signal.SIGTERM)

    def end(self) -> None:
        """End it as one should; where that takes too long, at once."""
        if self._running is None:
            return
        self.thaw()
        self._running.terminate()
        try:
            self._running.wait(15)
        except subprocess.TimeoutExpired:
            self._running.kill()
            self._running.wait()

    def wait(self) -> int:
        """Wait until it has ended by itself; gives its exit code."""
        assert self._running is not None
        return self._running.wait(PATIENCE_S)

    def _send(self, number: signal.Signals) -> None:
        if self._running is not None and self._running.poll() is None:
            self._running.send_signal(number)
