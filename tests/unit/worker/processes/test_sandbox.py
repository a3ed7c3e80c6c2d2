"""The sandbox: real processes that try to write, read, signal and look outside."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from noetl.model.errors import InvalidInput
from noetl.model.outcome import Outcome
from noetl.ports import Job
from noetl.worker.processes import sandbox
from noetl.worker.processes.children import ChildPool

KINDS = [
    pytest.param("landlock", marks=pytest.mark.skipif(sandbox.problem("landlock") is not None, reason="no Landlock")),
    pytest.param("bwrap", marks=pytest.mark.skipif(sandbox.problem("bwrap") is not None, reason="no bwrap")),
]


@pytest.fixture(params=KINDS)
def mode(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest_asyncio.fixture
async def pool(mode: str, tmp_path: Path) -> AsyncIterator[ChildPool]:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "noetl.db").write_text("everything")
    (tmp_path / "seen.txt").write_text("seen")
    made = ChildPool(sandbox=mode, hidden=[str(tmp_path / "store"), str(tmp_path / "not there")])
    yield made
    await made.close()


async def python(pool: ChildPool, code: str, **variables: object) -> Outcome:
    return await pool.python("1", Job(code, variables=variables), lambda _: None)


@pytest.mark.asyncio
async def test_code_writes_to_its_own_folder_only(pool: ChildPool, tmp_path: Path) -> None:
    code = """
import os, tempfile
with tempfile.NamedTemporaryFile("w", delete=False) as file:
    file.write("mine")
os.mkdir(tempfile.gettempdir() + "/below")
denied = []
for act in (lambda: open(folder + "/new", "w"), lambda: open(folder + "/seen.txt", "a"), lambda: os.remove(folder + "/seen.txt"),
            lambda: os.mkdir(folder + "/dir"), lambda: os.rename(folder + "/seen.txt", folder + "/gone")):
    try:
        act()
    except OSError as error:
        denied.append(type(error).__name__)
result = [open(file.name).read(), denied, open(folder + "/seen.txt").read(), tempfile.gettempdir()]
open("/dev/null", "w").write("x")
"""
    outcome = await python(pool, code, folder=str(tmp_path))
    assert outcome.status == "ok", outcome.error
    own, denied, seen, folder = outcome.result
    assert (own, len(denied), seen) == ("mine", 5, "seen")
    assert sorted(os.listdir(tmp_path)) == ["seen.txt", "store"]
    await pool.close()
    assert not Path(folder).exists()


@pytest.mark.asyncio
async def test_what_is_hidden_is_not_read(pool: ChildPool, tmp_path: Path) -> None:
    code = "result = open(path).read()"
    assert (await python(pool, code, path=str(tmp_path / "seen.txt"))).result == "seen"
    hidden = await python(pool, code, path=str(tmp_path / "store" / "noetl.db"))
    assert hidden.error is not None
    assert hidden.error.code in ("PY_PermissionError", "PY_FileNotFoundError")


@pytest.mark.asyncio
@pytest.mark.parametrize("execution", ["1", "2"])
async def test_a_file_that_came_later_is_read(pool: ChildPool, tmp_path: Path, execution: str) -> None:
    """A child of the execution, or a spare one, was confined before the file came."""
    await python(pool, "result = 1")
    await asyncio.sleep(0.3)
    (tmp_path / "later.txt").write_text("later")
    read = Job("result = open(path).read()", variables={"path": str(tmp_path / "later.txt")})
    assert (await pool.python(execution, read, lambda _: None)).result == "later"


@pytest.mark.asyncio
async def test_a_task_does_not_read_the_folder_of_another(pool: ChildPool) -> None:
    write = "import os, time\npath = os.environ['TMPDIR'] + '/mine'\nopen(path, 'w').write('x')\nprint(path)\ntime.sleep(600)"
    printed: asyncio.Queue[str] = asyncio.Queue()
    writing = asyncio.create_task(pool.python("1", Job(write), printed.put_nowait))
    path = await printed.get()
    other = await pool.python("2", Job("result = open(path).read()", variables={"path": path}), lambda _: None)
    assert other.error is not None
    assert other.error.code in ("PY_PermissionError", "PY_FileNotFoundError")
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert not Path(path).exists()


@pytest.mark.asyncio
async def test_each_task_finds_its_folder_empty(pool: ChildPool) -> None:
    code = "import os\nown = os.environ['TMPDIR']\nresult = os.listdir(own)\nos.mkdir(own + '/a')\nopen(own + '/a/b', 'w').close()"
    assert (await python(pool, code)).result == []
    assert (await python(pool, code)).result == []


@pytest.mark.asyncio
async def test_the_worker_is_out_of_reach(pool: ChildPool) -> None:
    signalled = await python(pool, f"import os\nos.kill({os.getpid()}, 0)")
    assert signalled.error is not None
    assert signalled.error.code in ("PY_PermissionError", "PY_ProcessLookupError")
    looked = await python(pool, f"result = len(open('/proc/{os.getpid()}/environ', 'rb').read())")
    assert looked.result in (0, None)  # nothing, or an error


@pytest.mark.asyncio
async def test_commands_are_behind_the_same_walls(pool: ChildPool, tmp_path: Path) -> None:
    command = "echo own > $TMPDIR/a && cat $TMPDIR/a seen.txt; touch new; cat store/noetl.db; grep NoNewPrivs /proc/self/status"
    ended = await pool.command(["sh", "-c", command], env={}, cwd=str(tmp_path))
    assert ended.stdout == b"own\nseenNoNewPrivs:\t1\n"
    assert ended.stderr.count(b"\n") == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.asyncio
async def test_a_sandbox_that_cannot_be_made_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "landlock_version", lambda: 0)
    with pytest.raises(InvalidInput, match="`landlock`, and it cannot be made: this kernel has no Landlock"):
        ChildPool(sandbox="landlock")
    with pytest.raises(InvalidInput, match="`bwrap`, and it cannot be made: this kernel has no Landlock"):
        ChildPool(sandbox="bwrap")  # tasks inside the worker need it
    monkeypatch.setattr(sandbox, "landlock_version", lambda: 6)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(InvalidInput, match="bwrap \\(bubblewrap\\) is not installed"):
        ChildPool(sandbox="bwrap")


def test_the_command_for_bwrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    hidden = [str(tmp_path / name) for name in ("folder", "file", "not there")]
    argv = sandbox.inside_bwrap(["python3"], ["/tmp/own"], hidden)
    assert argv[:2] == ["/usr/bin/bwrap", "--die-with-parent"]
    text = " ".join(argv)
    assert "--ro-bind / /" in text
    assert f"--tmpfs {hidden[0]} --ro-bind /dev/null {hidden[1]} --bind /tmp/own /tmp/own -- python3" in text
