"""Playbooks on their way to a server's catalog: read from files, together with those they call.

A `kind: playbook` task may name a file beside its caller. A server has no such files, so the text that is sent names the
child by its own path; nothing else in it changes. Checks nothing: the server does. Tested in tests/client/test_register.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct

from noetl.cli.common.files import FileTrouble, playbook_files, read_playbook
from noetl.cli.playbooks.disk_catalog import DiskCatalog
from noetl.dsl.nodes import Scalar
from noetl.dsl.normalize import normalize
from noetl.dsl.parse import parse
from noetl.dsl.playbook import Playbook, Value
from noetl.model.errors import InvalidInput, InvalidPlaybook

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.answers import Registered


class Gathered(Struct, frozen=True):
    """A playbook: the file it came from, its path, and the text to be sent."""

    name: str
    path: str
    text: str


class Gathering(Struct):
    """The playbooks that were found so far, by file; those that are called come before their callers."""

    folder: Path
    there: Collection[str] = ()  # paths of the server's catalog
    found: dict[Path, Gathered] = {}
    missing: dict[str, str] = {}  # path → the file that calls it
    _paths: dict[Path, str] = {}  # of all that were begun: a playbook that calls itself is not read again

    def add(self, names: list[str]) -> None:
        """Read files and folders. Raises InvalidInput where one cannot be read."""
        troubles: list[FileTrouble] = []
        for name in playbook_files(names, troubles):
            self._read(name, troubles)
        if troubles:
            raise InvalidInput("; ".join(trouble.message for trouble in troubles))

    def _read(self, name: str, troubles: list[FileTrouble]) -> str:
        file = self.folder / "-" if name == "-" else Path(name).resolve()
        if file in self._paths:
            return self._paths[file]
        content = read_playbook(name, troubles)
        if content is None:
            return ""
        document = parse(content, name)
        tree, text = normalize(document), document.source.text
        self._paths[file] = tree.path
        catalog = DiskCatalog(self.folder, file.parent)
        edits: list[tuple[int, int, str]] = []
        for value in _called(tree):
            path = self._child(str(value.data), catalog, name, troubles)
            if path and path != value.data and isinstance(value.at, Scalar):
                edits.append((value.at.start, value.at.end, path))
        for start, end, path in sorted(edits, reverse=True):
            text = f'{text[:start]}"{path}"{text[end:]}'
        self.found[file] = Gathered(name, tree.path, text)
        return tree.path

    def _child(self, path: str, catalog: DiskCatalog, caller: str, troubles: list[FileTrouble]) -> str:
        """Read a called playbook where it is a file, or where only this machine has it; gives its path."""
        file = catalog.file(path)
        by_name = file is not None and not catalog.is_beside(path)
        if file is None or (by_name and path in self.there):
            if path not in self.there and path not in self._paths.values():
                self.missing.setdefault(path, caller)
            return path
        return self._read(str(file), troubles)


def _called(tree: Playbook) -> Iterator[Value]:
    tasks = [*(task for step in tree.workflow for task in step.tasks), *tree.workbook]
    for task in tasks:
        path = task.fields.get("path") if task.kind == "playbook" else None
        if path is not None and isinstance(path.data, str) and "{{" not in path.data and "{%" not in path.data:
            yield path


async def brought(client: Client, names: list[str], folder: Path) -> list[Registered]:
    """Put playbooks and those they call into a server's catalog; none where one has errors. The last one was named last."""
    gathering = Gathering(folder, await _there(client))
    gathering.add(names)
    found = list(gathering.found.values())
    if len(found) > 1:
        await _all_good(client, found)
    made = [await _registered(client, one) for one in found]
    for path, caller in gathering.missing.items():
        typer.echo(f"noetl: {caller} calls `{path}`, which is neither here nor in the catalog yet", err=True)
    return made


async def _all_good(client: Client, found: list[Gathered]) -> None:
    """Check all before any is stored. Raises InvalidPlaybook with what is wrong with each."""
    wrong = []
    for one in found:
        try:
            await _registered(client, one, check_only=True)
        except InvalidPlaybook as error:
            wrong.append(str(error))
    if wrong:
        raise InvalidPlaybook("\n".join(wrong))


async def _registered(client: Client, one: Gathered, *, check_only: bool = False) -> Registered:
    try:
        return await client.register(one.text, check_only=check_only)
    except InvalidPlaybook as error:
        raise InvalidPlaybook(f"{one.name}: {error}") from None


async def _there(client: Client) -> set[str]:
    """Give the paths of a server's catalog."""
    found: set[str] = set()
    cursor: str | None = None
    while True:
        page = await client.playbooks(cursor=cursor, limit=1_000)
        found.update(one.path for one in page.playbooks)
        cursor = page.next
        if cursor is None:
            return found
