"""Blob store in a folder: one file per large result, written atomically.

A file is written under a temporary name, flushed, then renamed. File names are hashes of addresses, so no address can
point outside of the folder. Tested in tests/conformance/test_blobs.py.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO, TypeVar

import msgspec

from noetl.blobs.ranges import missing, pieces, span
from noetl.model.errors import StoreUnavailable
from noetl.private_files import make_private_folder

Result = TypeVar("Result")


class FileBlobs:
    """Blobs in a folder, each with a second file that holds its `meta`."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        await self._in_thread(self._put, ref, (data,), _encode_meta(ref, meta))

    async def put_file(self, ref: str, file: BinaryIO, meta: Mapping[str, Any]) -> None:
        await self._in_thread(self._put, ref, pieces(file), _encode_meta(ref, meta))

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        first, _ = span(start, length)
        return await self._in_thread(self._get, ref, first, length)

    async def about(self, ref: str) -> Mapping[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(await self._in_thread(self._about, ref))
        meta: dict[str, Any] = found["meta"]
        return meta

    async def delete(self, refs: Sequence[str]) -> None:
        await self._in_thread(self._delete, list(refs))

    async def stored(self) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
        for folder in await self._in_thread(self._folders):
            for text in await self._in_thread(_read_metas, folder):
                found = msgspec.json.decode(text)
                yield found["ref"], found["meta"]

    async def tidy(self, before: int) -> int:
        return await self._in_thread(self._tidy, before)

    async def _in_thread(self, job: Callable[..., Result], *args: Any) -> Result:
        try:
            return await asyncio.to_thread(job, *args)
        except OSError as error:
            raise StoreUnavailable(f"the folder {self._folder} cannot be used now: {error}") from error

    def _path(self, ref: str) -> Path:
        name = sha256(ref.encode()).hexdigest()
        return self._folder / name[:2] / name

    def _put(self, ref: str, parts: Iterable[bytes], about: bytes) -> None:
        path = self._path(ref)
        make_private_folder(path.parent)
        _write(path, parts)
        _write(path.with_suffix(".json"), (about,))  # a blob without this file is incomplete

    def _get(self, ref: str, start: int, length: int | None) -> bytes:
        try:
            with self._path(ref).open("rb") as file:
                file.seek(start)
                return file.read(-1 if length is None else length)
        except FileNotFoundError:
            raise missing(ref) from None

    def _about(self, ref: str) -> bytes:
        try:
            return self._path(ref).with_suffix(".json").read_bytes()
        except FileNotFoundError:
            raise missing(ref) from None

    def _folders(self) -> list[Path]:
        return sorted(self._folder.iterdir()) if self._folder.is_dir() else []

    def _tidy(self, before: int) -> int:
        removed = 0
        for path in (path for folder in self._folders() for path in folder.iterdir()):
            incomplete = path.name.startswith(".") or (not path.suffix and not path.with_suffix(".json").exists())
            with suppress(FileNotFoundError):
                if incomplete and path.stat().st_mtime * 1000 < before:
                    path.unlink()
                    removed += 1
        return removed

    def _delete(self, refs: Sequence[str]) -> None:
        for ref in refs:
            path = self._path(ref)
            path.with_suffix(".json").unlink(missing_ok=True)
            path.unlink(missing_ok=True)


def _read_metas(folder: Path) -> list[bytes]:
    found = []
    for path in sorted(folder.glob("*.json")):
        with suppress(FileNotFoundError):  # deleted concurrently
            found.append(path.read_bytes())
    return found


def _encode_meta(ref: str, meta: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode({"ref": ref, "meta": meta})


def _write(path: Path, parts: Iterable[bytes]) -> None:
    with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        try:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
