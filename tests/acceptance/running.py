"""Run playbooks with the real command in a folder of their own."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

from tests.acceptance.run import Ran, noetl
from tests.preloaded import start_command

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{ name: {name}, path: test/{name} }}\n"
PATIENCE_S = 60.0
# The rest of `tool:` for a task that leaves its idempotency key in a file.
NOTE = """
    kind: python
    args: { key: "{{ _idempotency_key }}" }
    code: |
      import os
      with open("effects.txt", "a") as file:
          file.write(key + "\\n")
          file.flush()
          os.fsync(file.fileno())
      result = 1
"""


@dataclass(frozen=True)
class Folder:
    """A folder with playbooks and a store."""

    path: Path

    def playbook(self, workflow: str, name: str = "play", **sections: Any) -> str:
        """Write a playbook from its workflow and other sections; return the file's name."""
        text = HEAD.format(name=name)
        text += "".join(f"{section}: {json.dumps(data)}\n" for section, data in sections.items())
        text += "workflow:\n" + indent(dedent(workflow).strip("\n"), "  ") + "\n"
        (self.path / f"{name}.yaml").write_text(text, encoding="utf-8")
        return f"{name}.yaml"

    def call(self, *arguments: str, **environment: str) -> Ran:
        return noetl(*arguments, cwd=self.path, stdin=None, **environment)

    def run(self, *arguments: str) -> Summary:
        """Run with `--json` and read the last line."""
        ran = self.call("run", *arguments, "--json")
        return summary(ran)

    def events(self, execution_id: str = "last", *more: str) -> list[dict[str, Any]]:
        ran = self.call("events", execution_id, "--json", *more)
        assert ran.code == 0, ran.err
        return [json.loads(line) for line in ran.out.splitlines()]

    @contextmanager
    def started(self, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a command that goes on by itself; what is left of it at the end is killed."""
        given = {**os.environ, "COLUMNS": "100", **environment}
        with start_command(*arguments, folder=self.path, environment=given) as process:
            try:
                yield process
            finally:
                process.kill()

    def lines(self, name: str) -> list[str]:
        file = self.path / name
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def ids(self) -> list[str]:
        """Return the executions of the store, newest first."""
        if not (self.path / ".noetl" / "noetl.db").exists():
            return []
        ran = self.call("runs", "--json")
        return [json.loads(line)["execution_id"] for line in ran.out.splitlines()]


@dataclass(frozen=True)
class Summary:
    """The last line of `noetl run --json`, and the exit code."""

    code: int
    data: dict[str, Any]
    err: str

    @property
    def status(self) -> str:
        return str(self.data["status"])

    @property
    def result(self) -> Any:
        return self.data["result"]

    @property
    def id(self) -> str:
        return str(self.data["execution_id"])


def summary(ran: Ran) -> Summary:
    """Read what a command with `--json` printed last."""
    assert ran.out, ran.err
    return Summary(ran.code, json.loads(ran.out.splitlines()[-1]), ran.err)


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that another process does."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.01)
