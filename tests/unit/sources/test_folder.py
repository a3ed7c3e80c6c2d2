"""Files of a real folder: whole ones only, each once, read within bounds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from noetl.model.errors import SourceUnavailable
from noetl.ports.triggers import Page
from noetl.sources.folder import FolderSource
from noetl.triggers.subscription import SubscriptionSpec

pytestmark = pytest.mark.asyncio
OLD_NS = 1_700_000_000_000_000_000


class Drop:
    """A folder, its source, and what was taken in."""

    def __init__(self, folder: Path, allowed: Sequence[str] | None = None, **fields: Any) -> None:
        self.folder, self.taken = folder, set[str]()
        spec = SubscriptionSpec("folder", folder=str(folder), **fields)
        self.source = FolderSource(spec, [str(folder)] if allowed is None else allowed, most_bytes=100)

    def put(self, name: str, content: bytes = b'{"n": 1}', at: int = 0) -> Path:
        path = self.folder / name
        path.write_bytes(content)
        os.utime(path, ns=(OLD_NS, OLD_NS + at))
        return path

    async def poll(self, most: int = 10) -> Page:
        async def known(ids: Sequence[str]) -> set[str]:
            return self.taken & set(ids)

        return await self.source.poll({}, most, known)

    async def take(self, most: int = 10) -> list[str]:
        """Poll, take in and acknowledge; return the names of the files."""
        page = await self.poll(most)
        self.taken |= {one.message_id for one in page.messages}
        await self.source.ack(page.messages)
        return [one.facts["file"]["name"] for one in page.messages]


async def test_whole_files_come_once_and_oldest_first(tmp_path: Path) -> None:
    drop = Drop(tmp_path, pattern="*.json*")
    for at, name in enumerate(("b.json", "a.json", ".c.json", "d.json.tmp", "e.json.part", "f.txt")):
        drop.put(name, at=at)
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "new.json").write_text("{}")  # its writer may not be done
    page = await drop.poll(1)
    assert (page.lag, page.more) == (1, True)
    [first] = page.messages
    file = {"name": "b.json", "path": str(tmp_path / "b.json"), "size": 8, "modified_at": OLD_NS // 1_000_000}
    assert (first.data, first.facts) == ({"n": 1}, {"file": file})
    assert await drop.take() == ["b.json", "a.json"]
    assert await drop.take() == []
    drop.put("a.json", b'{"n": 2}', at=9)
    assert await drop.take() == ["a.json"], "a replaced file is a new message"
    assert sorted(path.name for path in tmp_path.iterdir())[:2] == [".c.json", "a.json"], "files are kept"


async def test_files_are_deleted_after_they_are_taken_in(tmp_path: Path) -> None:
    drop = Drop(tmp_path, after="delete")
    path = drop.put("a.json")
    page = await drop.poll()
    drop.taken |= {page.messages[0].message_id}
    assert path.exists(), "a server died before the ack"
    assert await drop.take() == []
    assert not path.exists()
    path, page = drop.put("b.json"), await drop.poll()
    drop.put("b.json", b"{}", at=50_000_000)
    await drop.source.ack(page.messages)
    assert path.exists(), "it was replaced meanwhile"


@pytest.mark.parametrize(
    ("form", "content", "data", "problem"),
    [
        ("json", b"{", None, "It is not JSON"),
        ("json", b'"' + b"x" * 200 + b'"', None, "larger than 100 bytes"),
        ("json", b"\xff", None, "It is not JSON"),
        ("text", b"\xff", None, "It is not UTF-8."),
        ("text", "é".encode(), "é", ""),
        ("none", b"\xff" * 200, None, ""),
    ],
)
async def test_content_is_read_as_it_is_declared(
    tmp_path: Path, form: Any, content: bytes, data: Any, problem: str
) -> None:
    drop = Drop(tmp_path, format=form)
    drop.put("a", content)
    [message] = (await drop.poll()).messages
    assert message.data == data
    assert problem in message.problem
    assert bool(problem) == bool(message.problem)


async def test_links_and_folders_that_are_not_allowed_are_not_read(tmp_path: Path) -> None:
    inner, outer = tmp_path / "in", tmp_path / "out"
    inner.mkdir()
    outer.mkdir()
    (outer / "secret.json").write_text("{}")
    (inner / "link.json").symlink_to(outer / "secret.json")
    (inner / "up").symlink_to(outer)
    drop = Drop(inner)
    assert await drop.take() == []
    for folder, allowed in (
        (inner, ()),
        (outer, [str(inner)]),
        (inner / "up", [str(inner)]),
        (inner / "..", [str(inner)]),
    ):
        with pytest.raises(SourceUnavailable, match="NOETL_SUBSCRIPTION_FOLDERS"):
            await Drop(folder, allowed).poll()
    with pytest.raises(SourceUnavailable, match="Cannot read the folder"):
        await Drop(inner / "none", [str(inner)]).poll()


async def test_a_file_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    drop = Drop(tmp_path)
    drop.put("a.json").unlink()
    os.mkfifo(tmp_path / "a.json")
    drop.put("b.json", at=1)
    assert await drop.take() == ["b.json"]


@pytest.mark.parametrize("form", ["json", "none"])
async def test_a_file_whose_name_is_no_text_is_taken_in(tmp_path: Path, form: str) -> None:
    drop = Drop(tmp_path, format=form, after="delete")
    path = os.path.join(os.fsencode(tmp_path), b"\xff.json")
    with open(path, "wb") as opened:
        opened.write(b'{"n": 2}')
    os.utime(path, ns=(OLD_NS, OLD_NS))
    drop.put("\\xff.json", at=1)  # another file, whose name has a backslash
    page = await drop.poll()
    assert [one.facts["file"]["name"] for one in page.messages] == ["\\xff.json"] * 2
    assert [one.data for one in page.messages] == ([{"n": 2}, {"n": 1}] if form == "json" else [None, None])
    drop.taken |= {one.message_id for one in page.messages}
    await drop.source.ack(page.messages[:1])
    assert os.listdir(tmp_path) == ["\\xff.json"]
    assert await drop.take() == []
    assert os.listdir(tmp_path) == []
