"""A reader who follows a how-to on an empty machine, block by block.

Files (`yaml file=NAME`) are written, `sh` blocks are run as printed by bash, and a `text` block behind one is compared with the
output of its last command. Commands that run until they are stopped get a terminal of their own; the block goes on when they
are ready. A new server takes the place of the one before. Only what stands in `replaced` is replaced.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

from tests.docs.pages import ROOT, Block, blocks, name
from tests.docs.test_commands import same
from tests.preloaded import own_variables, preloaded

PATIENCE_S = 60.0
_SERVER = re.compile(r"noetl (up|serve)\b")
_READY = {_SERVER: "noetl: http://", re.compile(r"noetl worker\b(?! (?:list|drain))"): "noetl: worker "}


@dataclass
class Reader:
    """One person, one folder, and the exported variables of the terminal."""

    folder: Path
    replaced: Mapping[str, str]
    variables: dict[str, str] = field(default_factory=dict)
    running: list[tuple[str, subprocess.Popen[bytes]]] = field(default_factory=list)
    printed: str = ""  # by the last command

    def read(self, page: str) -> None:
        """Follow a page from its first to its last block."""
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in blocks(name(ROOT / page), text):
            self.follow(block)

    def follow(self, block: Block) -> None:
        for word in block.info:
            if word.startswith("file="):
                (self.folder / word.removeprefix("file=")).write_text(block.text, encoding="utf-8")
        if block.info[:1] == ("sh",):
            for command in commands(self.replace(block.text)):
                self.run(command, block.where)
        elif block.info[:1] == ("text",):
            assert same(block.text, self.printed), f"{block.where}: printed was\n{self.printed}"

    def replace(self, text: str) -> str:
        for shown, real in self.replaced.items():
            text = text.replace(shown, real)
        return text

    def run(self, command: str, where: str) -> None:
        for pattern, ready in _READY.items():
            if pattern.match(command):
                if pattern is _SERVER:
                    self.stop()
                self._start(command, ready, where)
                return
        kept = self.folder.parent / "variables"
        done = subprocess.run(
            ["bash", "-c", f'{command}\ncode=$?; env -0 > "{kept}"; exit $code'],
            cwd=self.folder, env=self.variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        self.printed = done.stdout.decode()
        assert done.returncode == 0, f"{where}: {command}\n{self.printed}{done.stderr.decode()}"
        self.variables = dict(line.split("=", 1) for line in kept.read_text().split("\0") if line)

    def _start(self, command: str, ready: str, where: str) -> None:
        log = self.folder.parent / f"terminal-{len(self.running)}.log"
        with log.open("wb") as out:
            started = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self.folder, env=self.variables, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        self.running.append((command, started))
        end = monotonic() + PATIENCE_S
        while ready not in log.read_text(errors="replace"):
            assert started.poll() is None, f"{where}: {command} ended:\n{log.read_text()}"
            assert monotonic() < end, f"{where}: {command} is not ready:\n{log.read_text()}"
            sleep(0.02)

    def stop(self) -> None:
        """Press Ctrl-C in every other terminal, the newest first."""
        while self.running:
            command, started = self.running.pop()
            started.send_signal(signal.SIGINT)
            try:
                code = started.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()
                raise AssertionError(f"{command} does not stop") from None
            assert code == 0, f"{command} ended with {code}"


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a block: lines, with those that a backslash continues."""
    for command in text.replace("\\\n", "\0").splitlines():
        if command.strip() and not command.lstrip().startswith("#"):
            yield command.replace("\0", "\\\n")


@contextmanager
def reader(place: Path, replaced: Mapping[str, str], **variables: str) -> Iterator[Reader]:
    """Yield a reader with an empty home, an empty folder, and `noetl` on the path.

    Its commands are forked from a loaded process; test_install runs the program that pip installs.
    """
    for part in ("home", "folder", "bin"):
        (place / part).mkdir()
    preloaded().write_program(place / "bin" / "noetl")
    path = f"{place / 'bin'}:{os.environ['PATH']}"
    clean = {"PATH": path, "HOME": str(place / "home"), **own_variables(os.environ), **variables}
    found = Reader(place / "folder", replaced, clean)
    try:
        yield found
        found.stop()
    finally:
        for _, started in found.running:
            started.kill()
            started.wait()
