"""What tasks print is shown while they run, on stderr; `-q` hides it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping

from noetl.cli.output.progress import LineProgress, TaskOutput
from noetl.engine.state.execution import Execution
from noetl.model.events import Event
from tests.acceptance.running import Folder, until
from tests.server.serving import process

PRINTING = """
- step: load
  tool:
    - name: read
      kind: python
      code: |
        print("reading")
        result = 1
    - name: pack
      kind: shell
      command: "echo packed; echo careful >&2; printf 'no \\\\033[31mbreak'"
"""
SHOWN = (
    "│ load read: reading\n",
    "│ load pack: packed\n",
    "│ load pack: WARNING careful\n",
    "│ load pack: no \\x1b[31mbreak\n",
)
# Each task prints, and ends when the file is there.
WAITING = """
- step: slow
  tool:
    - name: first
      kind: python
      code: |
        import os, time
        print("python is at work")
        while not os.path.exists("one"): time.sleep(0.01)
    - name: second
      kind: shell
      command: "echo the shell is at work; while [ ! -e two ]; do sleep 0.01; done"
"""


def test_run_shows_what_tasks_print_beside_the_result(folder: Folder) -> None:
    file = folder.playbook(PRINTING)
    ran = folder.call("run", file)
    assert ran.code == 0, ran.err
    for line in SHOWN:
        assert line in ran.err, ran.err
    assert json.loads(ran.out)["stdout"].startswith("packed\n")
    logged = folder.call("logs", "last").out
    assert "load read: reading\n" in logged
    assert "load pack: packed\n" in logged


def test_quiet_hides_it_and_json_stays_alone(folder: Folder) -> None:
    file = folder.playbook(PRINTING)
    quiet = folder.call("run", "-q", file)
    assert quiet.code == 0
    assert not [line for line in SHOWN if line in quiet.err]
    assert "✓ load" in quiet.err
    alone = folder.call("run", file, "--json")
    assert (alone.err, len(alone.out.splitlines())) == ("", 1)


def test_it_is_shown_while_the_task_runs(folder: Folder) -> None:
    file = folder.playbook(WAITING)
    with folder.started("run", file) as running:
        read_until(running, "slow first: python is at work")
        assert running.poll() is None
        (folder.path / "one").touch()
        read_until(running, "slow second: the shell is at work")
        assert running.poll() is None
        (folder.path / "two").touch()
        running.communicate()
    assert running.returncode == 0


def read_until(running: subprocess.Popen[bytes], said: str) -> None:
    stderr = running.stderr
    assert stderr is not None
    seen: list[str] = []

    def is_said() -> bool:
        seen.append(stderr.readline().decode())
        assert seen[-1] or running.poll() is None, seen
        return said in seen[-1]

    until(is_said, said)


def test_a_server_tells_it_too(folder: Folder) -> None:
    folder.playbook(PRINTING)
    with process(folder.path, "up", auth="auto") as (url, _):
        assert folder.call("register", "play.yaml", "--server", url).code == 0
        shown = folder.call("exec", "test/play", "--follow", "--server", url)
        quiet = folder.call("exec", "test/play", "--follow", "--quiet", "--server", url)
    assert (shown.code, quiet.code) == (0, 0)
    assert [line for line in SHOWN if line not in shown.err] == []
    assert [line for line in SHOWN if line in quiet.err] == []
    assert "✓ load" in quiet.err


def test_the_output_of_a_step_is_bounded() -> None:
    written: list[str] = []
    progress, state = LineProgress(written.append, TaskOutput()), Execution("7")
    for item in range(30):
        lines = [[1, "info", f"{item} " + "x" * 2_000]] * 100
        payload = {"lines": lines}
        progress.update(event("load#1", item, payload), state)
    progress.update(event("other#1", None, {"lines": [[1, "info", "short"]], "dropped": 5}), state)
    assert len(written) == 1_000 + 1 + 2
    assert max(map(len, written)) < 600
    assert "more output of load: `noetl logs 7 --step load`" in written[1_000]
    assert written[-2].endswith("│ other t: short")
    assert written[-1].endswith("│ other t: WARNING 5 more lines were dropped")


def event(run: str, item: int | None, payload: Mapping[str, object]) -> Event:
    return Event(
        "e",
        "7",
        1,
        "task.logged",
        1,
        entity_type="task",
        entity_id="t",
        step_run_id=run,
        iteration=item,
        payload=payload,
    )
