"""Folders of tasks are removed, however deep or closed they are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from noetl.ports import Job
from noetl.worker.processes import folders, sandbox
from noetl.worker.processes.children import ChildPool

needs_landlock = pytest.mark.skipif(sandbox.problem("landlock") is not None, reason=str(sandbox.problem("landlock")))
# Deeper than a path may be long (4,096), a process may open files (1,024) and Python may recurse (1,000).
DEEP = """
import os
for _ in range(1100):
    os.mkdir("folder")
    os.chdir("folder")
open("file", "w").close()
"""
CLOSED = """
import os, sys
from noetl.worker.processes import folders
if os.getuid() == 0:
    os.setgroups([])
    os.setuid(65534)
os.chdir(sys.argv[1])
for mode in (0o555, 0o000, 0o300):
    os.makedirs(f"made/{mode}/below")
    open(f"made/{mode}/below/file", "w").close()
    os.chmod(f"made/{mode}/below", mode)
    os.chmod(f"made/{mode}", mode)
os.chmod("made", 0)
folders.remove("made")
"""


def test_a_deep_folder_with_files_is_removed(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    subprocess.run([sys.executable, "-c", DEEP], cwd=made, check=True)
    for name in ("a", "b/c", "b/d/e"):
        (made / "wide" / name).mkdir(parents=True)
        (made / "wide" / name / "file").touch()
    folders.remove(str(made))
    assert os.listdir(tmp_path) == []


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "made" / "link").symlink_to(tmp_path / "kept")
    folders.empty(str(tmp_path / "made"))
    assert os.listdir(tmp_path / "made") == []
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    folders.remove(str(tmp_path / "link"))
    folders.remove(str(tmp_path / "not there"))
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_closed_folders_are_removed_by_their_owner() -> None:
    """As another user where the tests run as root, who may do everything."""
    with TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        subprocess.run([sys.executable, "-c", CLOSED, place], check=True)
        assert os.listdir(place) == []


@needs_landlock
@pytest.mark.asyncio
async def test_deep_folders_of_one_task_end_no_other() -> None:
    pool = ChildPool(sandbox="landlock")
    try:
        deep = "import os\nos.chdir(os.environ['TMPDIR'])" + DEEP + "result = os.getppid()"
        first = await pool.python("1", Job(deep), print)
        second = await pool.python("1", Job("import os\nresult = os.listdir(os.environ['TMPDIR'])"), print)
        assert second.result == [], second.error
        ended = await pool.command(["python3", "-c", "import os\nos.chdir(os.environ['TMPDIR'])" + DEEP], env={})
        assert ended.returncode == 0
        await pool.python("1", Job(deep + "\nos._exit(0)"), print)
        third = await pool.python("1", Job("import os\nresult = os.getppid()"), print)
        assert third.result == first.result  # the nursery still runs
    finally:
        await pool.close()
    assert not os.path.exists(pool.scratch)
