"""Files and folders of the owner alone, under any umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noetl.private_files import make_private_folder, open_private, write_private

UMASKS = (0o000, 0o022, 0o077, 0o777)


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", UMASKS)
def test_what_is_created_is_the_owners_alone(tmp_path: Path, mask: int) -> None:
    with umask(mask):
        make_private_folder(tmp_path / "a" / "b")
        os.close(open_private(tmp_path / "a" / "opened"))
        write_private(tmp_path / "c" / "d" / "written", "text")
    assert {mode(tmp_path / name) for name in ("a", "a/b", "c", "c/d")} == {0o700}
    assert {mode(tmp_path / name) for name in ("a/opened", "c/d/written")} == {0o600}
    assert [path.name for path in (tmp_path / "c" / "d").iterdir()] == ["written"]


def test_what_exists_keeps_its_permissions_and_its_text(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o750)
    file = shared / "file"
    file.write_text("kept")
    file.chmod(0o640)
    make_private_folder(shared)
    os.close(open_private(file))
    assert (mode(shared), mode(file), file.read_text()) == (0o750, 0o640, "kept")


def test_the_target_of_a_link_is_created_for_its_owner(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with umask(0):
        os.close(open_private(tmp_path / "link"))
    assert mode(tmp_path / "target") == 0o600


def test_a_replaced_file_loses_the_permissions_of_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert (mode(file), file.read_text()) == (0o600, "new")


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file" / "folder")
    with pytest.raises(FileExistsError):
        make_private_folder(tmp_path / "file")
