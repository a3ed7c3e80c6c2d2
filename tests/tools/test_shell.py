"""Kinds `shell`, `script` and `noop` with real processes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.server.cancelling import is_alive
from tests.tools.attempts import Attempts

pytestmark = pytest.mark.asyncio


async def test_a_command_line(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"command": "echo out; echo err >&2"})
    assert tried.result == {"returncode": 0, "stdout": "out\n", "stderr": "err\n"}
    assert sorted(tried.lines) == ["err", "out"]


async def test_a_program_with_arguments_is_read_by_no_shell(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"command": ["echo", "$HOME; rm -rf x", "*"]})
    assert tried.result["stdout"] == "$HOME; rm -rf x *\n"


async def test_commands_run_in_order_in_one_shell(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"cmds": ["mkdir out", "cd out", "echo hi > a", "cat a"]})
    assert tried.result["stdout"] == "hi\n"


@pytest.mark.parametrize("kind", ["shell", "script"])
async def test_relative_paths_start_where_those_of_the_playbook_do(
    attempts: Attempts, tmp_path: Path, kind: str
) -> None:
    (tmp_path / "orders.csv").write_text("id\n7\n")
    (tmp_path / "read.sh").write_text("cat orders.csv")
    tried = await attempts.run(kind, {"command": "cat orders.csv"} if kind == "shell" else {"uri": "read.sh"})
    assert tried.result["stdout"] == "id\n7\n"


async def test_commands_stop_at_the_first_that_fails(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"cmds": ["echo one", "false", "echo two"]})
    assert tried.outcome.result == {"returncode": 1, "stdout": "one\n", "stderr": ""}
    assert tried.error.code == "EXIT_1"


async def test_the_environment_lies_over_the_workers(attempts: Attempts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEEN_BY_TASKS", "yes")
    monkeypatch.setenv("NOETL_ENCRYPTION_KEY", "hidden")
    fields = {
        "command": 'echo "$A $B $C $SEEN_BY_TASKS [$NOETL_ENCRYPTION_KEY]"',
        "env": {"A": "x y", "B": 3, "C": True},
    }
    assert (await attempts.run("shell", fields)).result["stdout"] == "x y 3 true yes []\n"


async def test_a_folder_of_the_playbook(attempts: Attempts, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    assert (await attempts.run("shell", {"command": "pwd", "cwd": "data"})).result["stdout"] == f"{tmp_path}/data\n"


async def test_an_exit_code_is_an_error_with_the_output_kept(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"command": "echo some; echo no such order >&2; exit 3"})
    assert tried.outcome.result == {"returncode": 3, "stdout": "some\n", "stderr": "no such order\n"}
    assert (tried.error.code, tried.error.retryable) == ("EXIT_3", False)
    assert tried.error.message == "the command failed with exit code 3: no such order"


async def test_a_signal_is_an_error(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"command": "kill -TERM $$"})
    assert tried.error.message == "the command failed with signal 15"
    assert tried.outcome.result["returncode"] == -15


@pytest.mark.parametrize("fields", [{"command": []}, {"command": ""}, {"cmds": []}])
async def test_nothing_to_run_is_an_error(attempts: Attempts, fields: dict[str, object]) -> None:
    assert (await attempts.run("shell", fields)).error.message == "nothing to run: the command is empty"


async def test_output_that_is_no_text_and_closed_output(attempts: Attempts) -> None:
    assert (await attempts.run("shell", {"command": r"printf 'a\377b'"})).result["stdout"] == "a\ufffdb"
    assert (await attempts.run("shell", {"command": "exec >&- 2>&-; true"})).result["stdout"] == ""


async def test_what_a_command_leaves_behind_is_ended_and_not_waited_for(attempts: Attempts, tmp_path: Path) -> None:
    command = "sleep 300 & echo $! > a; setsid sleep 300 & echo $! > b; (nohup sleep 300 >/dev/null 2>&1 & echo $! > c)"
    assert (await attempts.run("shell", {"command": command})).result["returncode"] == 0
    for name in "abc":
        pid = int((tmp_path / name).read_text())
        assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


async def test_what_cannot_be_started(attempts: Attempts) -> None:
    program = (await attempts.run("shell", {"command": ["no-such-program"]})).error
    assert program.message == "cannot start `no-such-program`: No such file or directory"
    folder = (await attempts.run("shell", {"command": "ls", "cwd": "/no/such/folder"})).error
    assert folder.message == "cannot change to the folder /no/such/folder: No such file or directory"


async def test_bytes_that_are_not_text(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"command": ["printf", r"a\377b"]})
    assert tried.result["stdout"] == "a�b"


async def test_much_output(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"command": "head -c 3000000 /dev/zero | tr '\\0' x; echo e >&2"})
    assert tried.result["stdout"] == "x" * 3_000_000


async def test_what_a_command_leaves_behind_ends_with_it(attempts: Attempts) -> None:
    tried = await attempts.run("shell", {"command": "sleep 300 & echo $!; (setsid sleep 300 & echo $!)"})
    first, second = map(int, tried.result["stdout"].split())
    for pid in (first, second):
        assert not is_alive(pid)


async def test_a_cancelled_command_ends_with_everything_it_started(attempts: Attempts, tmp_path: Path) -> None:
    command = "sleep 300 & echo $! > pids; setsid sleep 300 & echo $! >> pids; echo $$ >> pids; touch ready; wait"
    running = asyncio.create_task(attempts.run("shell", {"command": command, "cwd": "."}))
    while not (tmp_path / "ready").exists():
        await asyncio.sleep(0.01)
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert all(is_alive(pid) for pid in pids)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not any(is_alive(pid) for pid in pids)


async def test_a_script_gets_arguments_and_its_input(attempts: Attempts, tmp_path: Path) -> None:
    (tmp_path / "tidy.sh").write_text('echo "$1 $2"; cat\n')
    tried = await attempts.run("script", {"uri": "./tidy.sh", "arguments": ["a b", 2]}, input={"folder": "x"})
    assert tried.result["stdout"] == 'a b 2\n{"folder":"x"}'
    assert tried.lines[0].startswith("script ./tidy.sh sha256:")


async def test_a_script_says_which_program_reads_it(attempts: Attempts, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("#!/usr/bin/env python3\nprint(1 + 1)\n")
    assert (await attempts.run("script", {"uri": "report"})).result["stdout"] == "2\n"
    inline = {"script": {"content": "echo $0"}, "interpreter": ["sh", "-e"]}
    assert (await attempts.run("script", inline)).result["returncode"] == 0


async def test_a_script_that_nobody_can_run(attempts: Attempts, tmp_path: Path) -> None:
    (tmp_path / "report").write_text("print(1)")
    assert "set `interpreter`" in (await attempts.run("script", {"uri": "report"})).error.message
    assert (await attempts.run("script", {"uri": "none.sh"})).error.kind == "not_found"
    assert "type `s3`" in (await attempts.run("script", {"uri": "s3://bucket/a.sh"})).error.message


async def test_doing_nothing(attempts: Attempts) -> None:
    assert (await attempts.run("noop", {})).result is None
    assert (await attempts.run("noop", {"result": {"a": [1]}})).result == {"a": [1]}
    said = await attempts.run("noop", {"message": "Nothing today."})
    assert (said.result, said.lines) == ({"message": "Nothing today."}, ["Nothing today."])


async def test_suspending_kinds_are_run_by_no_worker() -> None:
    from noetl.tools import kinds

    assert [name for name in ("sleep", "wait", "playbook", "workbook", "nonsense") if kinds().runner(name)] == []
