"""Files that are dropped into a folder.

A file is identified by its name, size and time of change, so a file that is replaced is a new message. Names that begin with a
dot or end in `.tmp` or `.part` are left alone, and so is a file that changed a moment ago: its writer may not be done. Only
regular files count, and a link is never followed. Tested in tests/unit/sources/test_folder.py.
"""

from __future__ import annotations

import asyncio
import os
import stat
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from noetl.model.errors import SourceUnavailable
from noetl.ports.triggers import Known, Message, Page
from noetl.triggers.subscription import SubscriptionSpec, message_key

_UNFINISHED: Final = (".tmp", ".part")
_MOST_FILES: Final = 50_000
_SETTLED_NS: Final = 2_000_000_000


class FolderSource:
    """Files of one folder, oldest first."""

    is_ordered = False

    def __init__(
        self, spec: SubscriptionSpec, allowed: Sequence[str], most_bytes: int, settled_ns: int = _SETTLED_NS
    ) -> None:
        self._spec = spec
        self._allowed = allowed  # folders that this server may read
        self._most_bytes = most_bytes
        self._settled_ns = settled_ns
        self._odd: dict[str, bytes] = {}  # paths that are not UTF-8, by message id, of the last poll

    async def poll(self, position: Mapping[str, Any], most: int, known: Known) -> Page:
        found = await asyncio.to_thread(self._files)
        taken = await known(list(found)) if found else set()
        if taken and self._spec.after == "delete":  # a server died between the start and the ack
            await asyncio.to_thread(self._delete, [(name, found[name]) for name in taken])
        fresh = [(name, entry) for name, entry in found.items() if name not in taken]
        read = await asyncio.to_thread(lambda: [self._message(*one) for one in fresh[:most]])
        lag = len(fresh) - len(read)
        return Page(tuple(one for one in read if one is not None), position, lag, lag > 0)

    async def ack(self, messages: Sequence[Message]) -> None:
        if self._spec.after == "delete":
            await asyncio.to_thread(self._delete, [(one.message_id, one.facts["file"]) for one in messages])

    async def is_woken(self) -> bool:
        return False

    async def close(self) -> None: ...

    def _files(self) -> dict[str, Mapping[str, Any]]:
        """Return what is known of each whole file by message id, oldest first."""
        folder, now, found = self._folder(), time.time_ns(), []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if name.startswith(".") or name.endswith(_UNFINISHED) or not fnmatchcase(name, self._spec.pattern):
                        continue
                    with suppress(FileNotFoundError):  # it has just been taken away
                        known = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(known.st_mode) and not 0 <= now - known.st_mtime_ns < self._settled_ns:
                            found.append((known.st_mtime_ns, name, known.st_size))
                    if len(found) > _MOST_FILES:
                        raise SourceUnavailable(f"{folder} has more than {_MOST_FILES:,} files. Take some away.")
        except OSError as error:
            raise SourceUnavailable(f"Cannot read the folder {folder}: {error.strerror}.") from None
        files: dict[str, Mapping[str, Any]] = {}
        self._odd = {}
        for changed, name, size in sorted(found):
            path, message_id = os.path.join(folder, name), message_key(f"{_text(name)}:{size}:{changed}")
            shown = {"name": _text(name), "path": _text(path)}
            if shown["path"] != path:
                self._odd[message_id] = os.fsencode(path)
            files[message_id] = {**shown, "size": size, "modified_at": changed // 1_000_000}
        return files

    def _folder(self) -> str:
        """Return the folder, if this server may read it. Raises SourceUnavailable."""
        real = os.path.realpath(self._spec.folder)
        for one in self._allowed:
            whole = os.path.realpath(one)
            if os.path.commonpath((whole, real)) == whole:
                return real
        raise SourceUnavailable(
            f"This server may not read {self._spec.folder}. Add it to NOETL_SUBSCRIPTION_FOLDERS, and restart the server."
        )

    def _message(self, message_id: str, file: Mapping[str, Any]) -> Message | None:
        """Return the message of a file; None if the file is gone."""
        facts = {"file": file}
        if self._spec.format == "none":
            return Message(message_id, None, facts)
        if file["size"] > self._most_bytes:
            return Message(message_id, None, facts, problem=f"The file is larger than {self._most_bytes:,} bytes.")
        try:
            number = os.open(self._path(message_id, file), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(number, "rb") as opened:
                content = opened.read(self._most_bytes + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            return Message(message_id, None, facts, problem=f"The file cannot be read: {error.strerror}.")
        if len(content) > self._most_bytes:
            return Message(message_id, None, facts, problem=f"The file is larger than {self._most_bytes:,} bytes.")
        data, problem = parse(content, self._spec.format)
        return Message(message_id, data, facts, problem=problem)

    def _path(self, message_id: str, file: Mapping[str, Any]) -> bytes:
        return self._odd.get(message_id) or str(file["path"]).encode()

    def _delete(self, files: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        for message_id, file in files:
            path = self._path(message_id, file)
            try:
                known = os.lstat(path)
                if (known.st_size, known.st_mtime_ns // 1_000_000) == (file["size"], file["modified_at"]):
                    os.unlink(path)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise SourceUnavailable(f"Cannot delete {file['path']}: {error.strerror}.") from None


def parse(content: bytes, form: str) -> tuple[Any, str]:
    """Return the data of a message, and why it has none."""
    try:
        if form == "text":
            return content.decode(), ""
        return msgspec.json.decode(content), ""
    except UnicodeDecodeError:
        return None, "It is not UTF-8."
    except (msgspec.DecodeError, RecursionError) as error:
        return None, f"It is not JSON: {error}."


def _text(name: str) -> str:
    """Return a name as events can hold it: bytes that are not UTF-8 as `\\xff`."""
    return os.fsencode(name).decode(errors="backslashreplace")
