"""Large results as files in a folder: written beside, flushed, then renamed, so a file is whole or not there.

Names are hashes of the references: no reference can point out of the folder. Tested in tests/conformance/test_blobs.py.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TypeVar

import msgspec

from noetl.blobs.ranges import missing, span
from noetl.model.errors import StoreUnavailable

Result = TypeVar("Result")


class FileBlobs:
    """Blobs by reference, in a folder; what is known of each is in a second file beside it."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)

    async def put(self, ref: str, data: bytes, meta: Mapping[str, Any]) -> None:
        about = msgspec.json.encode({"ref": ref, "meta": meta})
        await self._in_thread(self._put, ref, data, about)

    async def get(self, ref: str, start: int = 0, length: int | None = None) -> bytes:
        first, _ = span(start, length)
        return await self._in_thread(self._get, ref, first, length)

    async def about(self, ref: str) -> Mapping[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(await self._in_thread(self._about, ref))
        meta: dict[str, Any] = found["meta"]
        return meta

    async def delete(self, refs: Sequence[str]) -> None:
        await self._in_thread(self._delete, list(refs))

    async def _in_thread(self, job: Callable[..., Result], *given: Any) -> Result:
        try:
            return await asyncio.to_thread(job, *given)
        except OSError as error:
            raise StoreUnavailable(f"the folder {self._folder} cannot be used now: {error}") from error

    def _path(self, ref: str) -> Path:
        name = sha256(ref.encode()).hexdigest()
        return self._folder / name[:2] / name

    def _put(self, ref: str, data: bytes, about: bytes) -> None:
        path = self._path(ref)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path.with_suffix(".json"), about)
        _write(path, data)

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

    def _delete(self, refs: Sequence[str]) -> None:
        for ref in refs:
            path = self._path(ref)
            path.unlink(missing_ok=True)
            path.with_suffix(".json").unlink(missing_ok=True)


def _write(path: Path, data: bytes) -> None:
    with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        try:
            file.write(data)
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
