"""How a run is shown: lines in a pipe, a picture on a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from tests.acceptance.running import Folder

PLAY = """
- step: flaky
  tool:
    - name: try_it
      kind: python
      code: |
        import os
        if not os.path.exists("tried"):
            open("tried", "w").close()
            raise RetryableError("not yet")
        result = 1
      spec:
        policy:
          rules:
            - { when: "{{ outcome.status == 'error' }}", then: { do: retry, attempts: 3, delay: 0.01 } }
            - { else: { then: { do: continue } } }
  next: [{ step: each }]
- step: each
  loop: { in: [1, 2, 3], iterator: n }
  tool: { kind: noop, result: "{{ iter.n }}" }
  next: [{ step: ask }]
- step: ask
  tool: { kind: wait, signal: go }
"""


def test_lines_tell_of_steps_retries_loops_and_waits(folder: Folder) -> None:
    ran = folder.call("run", folder.playbook(PLAY))
    assert ran.code == 4
    for said in (
        "▶ flaky",
        "↻ flaky: attempt 1 of try_it failed",
        "not yet",
        "✓ flaky",
        "each: 3 items, sequential",
        "✓ each",
        "⏸ ask: waits for the signal go",
    ):
        assert said in ran.err, ran.err


def test_a_terminal_shows_a_picture(folder: Folder) -> None:
    shown = on_terminal(folder, "run", folder.playbook(PLAY))
    assert "✓ each" in shown
    assert "⏸ ask: waits for the signal go" in shown
    assert "Traceback" not in shown


def test_json_is_alone(folder: Folder) -> None:
    ran = folder.call("run", folder.playbook("- step: a\n  tool: { kind: noop }"), "--json")
    assert len(ran.out.splitlines()) == 1
    assert ran.err == ""


def on_terminal(folder: Folder, *arguments: str) -> str:
    """Run a command whose stderr is a terminal, and give what that showed."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, "-m", "noetl", *arguments],
        cwd=folder.path,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment,
    ):
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    return shown.decode()
