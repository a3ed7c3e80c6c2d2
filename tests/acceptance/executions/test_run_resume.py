"""A killed run resumes: nothing is lost, at most the work in flight is repeated."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance.running import NOTE, Folder, summary, until

STEPS = 30


def shell(folder: Folder, command: str) -> str:
    """Return a workflow of one command that runs in the test's folder."""
    return f"- step: a\n  tool: {{ kind: shell, command: '{command}', cwd: '{folder.path}' }}"


def chain(folder: Folder) -> str:
    """Write a playbook of many steps; each leaves its idempotency key in a file."""
    steps = "".join(f"- step: s{number}\n  tool:{NOTE}  next: s{number + 1}\n" for number in range(STEPS - 1))
    return folder.playbook(steps + f"- step: s{STEPS - 1}\n  tool: {{ kind: noop, result: end }}\n", name="chain")


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.chaos) for seed in range(6, 50))])
def test_a_killed_run_is_resumed_and_does_everything_once_but_what_was_in_flight(folder: Folder, seed: int) -> None:
    chance = random.Random(seed)
    file, enough, moment = chain(folder), chance.randrange(STEPS - 6), chance.random() * 0.02
    with folder.started("run", file) as process:
        until(lambda: len(folder.lines("effects.txt")) > enough, f"effect {enough}")
        time.sleep(moment)  # the moment of the kill is what is varied here
        process.send_signal(signal.SIGKILL)
        process.wait()
    (execution_id,) = folder.ids()
    ran = summary(folder.call("resume", execution_id, "--json"))
    assert (ran.code, ran.status, ran.result) == (0, "completed", "end")
    once = {"done": 1, "failed": 0, "skipped": 0, "running": 0, "parked": 0}
    assert all(counts == once for counts in ran.data["steps"].values())
    assert len(ran.data["steps"]) == STEPS
    effects = Counter(folder.lines("effects.txt"))
    assert set(effects) == {f"{execution_id}:s{number}:s{number}_task" for number in range(STEPS - 1)}
    assert sum(count - 1 for count in effects.values()) <= 1


def test_a_second_resume_changes_nothing(folder: Folder) -> None:
    ran = folder.run(folder.playbook("- step: a\n  tool: { kind: noop, result: 1 }"))
    again = summary(folder.call("resume", ran.id, "--json"))
    assert again.data == ran.data
    assert again.code == 0


def test_only_one_process_drives_an_execution(folder: Folder) -> None:
    file = folder.playbook(shell(folder, "touch begun; sleep 60"))
    with folder.started("run", file) as process:
        until((folder.path / "begun").exists, "the step")
        refused = folder.call("resume", "last")
        assert refused.code == 1
        assert f"Process {process.pid}" in refused.err
        process.send_signal(signal.SIGINT)
        process.wait()
        assert process.returncode == 3


def test_a_loop_goes_on_with_the_items_that_are_left(folder: Folder) -> None:
    file = folder.playbook(
        """
        - step: each
          loop: { in: "{{ range(30) | list }}", iterator: n }
          tool:
            kind: python
            args: { n: "{{ iter.n }}" }
            code: |
              import time
              with open("effects.txt", "a") as file:
                  file.write(f"{n}\\n")
              time.sleep(0.05)
              result = n
        """
    )
    with folder.started("run", file) as process:
        until(lambda: len(folder.lines("effects.txt")) > 20, "most of the items")
        process.send_signal(signal.SIGKILL)
        process.wait()
    ran = summary(folder.call("resume", "last", "--json"))
    assert ran.result["results"] == list(range(30))
    done = Counter(folder.lines("effects.txt"))
    assert set(done) == {str(number) for number in range(30)}
    # Items are recorded in batches: what was done since the last one is done again, and nothing before it.
    again = [number for number in range(30) if done[str(number)] > 1]
    assert again == list(range(again[0], again[-1] + 1)) if again else True
    assert 0 not in again


def test_no_child_of_a_killed_run_lives_on(folder: Folder) -> None:
    file = folder.playbook(shell(folder, "echo $$ > pid; exec sleep 600"))
    with folder.started("run", file) as process:
        until(lambda: bool(folder.lines("pid")), "the step")
        process.send_signal(signal.SIGKILL)
        process.wait()
        pid = int(folder.lines("pid")[0])
        until(lambda: not _lives(pid), "the end of the child")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
