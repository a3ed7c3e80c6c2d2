"""Upload playbooks, and those they call, to a server's catalog.

A `kind: playbook` task can name a file relative to its caller. A server has no such files, so the uploaded text names the child
by its catalog path; nothing else in it changes. Tested in tests/client/test_register.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from noetl.cli.arguments.files import FileProblem, playbook_files, read_file
from noetl.cli.playbooks.disk_catalog import DiskCatalog
from noetl.cli.runtime.terminal import echo
from noetl.dsl.reading.nodes import Scalar
from noetl.dsl.reading.parse import parse
from noetl.dsl.tree.normalize import normalize
from noetl.dsl.tree.playbook import Playbook, Value
from noetl.model.errors import InvalidInput, InvalidPlaybook

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.answers import Registered


_NOT_AVAILABLE: Final = "NOE511"  # what the server cannot run or read


class Upload(Struct, frozen=True):
    """Playbook to upload: its file, its catalog path and its text."""

    name: str
    path: str
    text: str
    starts: bool = False  # a trigger of it starts another playbook


class Collector(Struct):
    """Collects playbooks to upload; called playbooks come before their callers."""

    folder: Path
    registered: Collection[str] = ()  # paths in the server's catalog
    uploads: dict[Path, Upload] = {}
    missing: dict[str, str] = {}  # path → calling file
    _paths: dict[Path, str] = {}  # of every file begun, so that recursion ends

    def add(self, names: list[str]) -> None:
        """Collect files and folders. Raises InvalidInput if one cannot be read."""
        problems: list[FileProblem] = []
        for name in playbook_files(names, problems):
            self._read(name, problems)
        if problems:
            raise InvalidInput("; ".join(problem.message for problem in problems))

    def _read(self, name: str, problems: list[FileProblem]) -> str:
        file = self.folder / "-" if name == "-" else Path(name).resolve()
        if file in self._paths:
            return self._paths[file]
        content = read_file(name, problems)
        if content is None:
            return ""
        document = parse(content, name)
        tree, text = normalize(document), document.source.text
        self._paths[file] = tree.path
        catalog = DiskCatalog(self.folder, file.parent)
        edits: list[tuple[int, int, str]] = []
        for value in _called_paths(tree):
            path = self._child(str(value.data), catalog, name, problems)
            if path and path != value.data and isinstance(value.at, Scalar):
                edits.append((value.at.start, value.at.end, path))
        for start, end, path in sorted(edits, reverse=True):
            text = f'{text[:start]}"{path}"{text[end:]}'
        self.uploads[file] = Upload(name, tree.path, text, any("dispatch" in one.fields for one in tree.triggers))
        return tree.path

    def _child(self, path: str, catalog: DiskCatalog, caller: str, problems: list[FileProblem]) -> str:
        file = catalog.file(path)
        by_name = file is not None and not catalog.is_beside(path)
        if file is None or (by_name and path in self.registered):
            if path not in self.registered and path not in self._paths.values():
                self.missing.setdefault(path, caller)
            return path
        return self._read(str(file), problems)


def _called_paths(tree: Playbook) -> Iterator[Value]:
    tasks = [*(task for step in tree.workflow for task in step.tasks), *tree.workbook]
    for task in tasks:
        path = task.fields.get("path") if task.kind == "playbook" else None
        if path is not None and isinstance(path.data, str) and "{{" not in path.data and "{%" not in path.data:
            yield path


async def upload(client: Client, names: list[str], folder: Path, *, tolerant: bool = False) -> list[Registered]:
    """Register playbooks and those they call, or none if one has errors."""
    collector = Collector(folder, await _catalog_paths(client))
    collector.add(names)
    uploads = sorted(collector.uploads.values(), key=lambda one: one.starts)  # after what they start
    if len(uploads) > 1:
        await _check_all(client, uploads, tolerant)
    registered = [await _register(client, one, tolerant) for one in uploads]
    for path, caller in collector.missing.items():
        echo(f"noetl: {caller} calls `{path}`, which is not on disk and not in the catalog", err=True)
    return registered


async def _check_all(client: Client, uploads: list[Upload], tolerant: bool) -> None:
    """Check all before any is stored. Raises InvalidPlaybook with the errors of each."""
    errors = []
    for one in uploads:
        try:
            await _register(client, one, tolerant, check_only=True)
        except InvalidPlaybook as error:
            errors.append(str(error))
    if errors:
        raise InvalidPlaybook("\n".join(errors))


async def _register(client: Client, one: Upload, tolerant: bool, *, check_only: bool = False) -> Registered:
    try:
        made = await client.register(one.text, check_only=check_only, tolerant=tolerant)
    except InvalidPlaybook as error:
        raise InvalidPlaybook(f"{one.name}: {error}") from None
    for told in made.diagnostics if not check_only else ():
        if told.code == _NOT_AVAILABLE:
            echo(f"noetl: {one.name}:{told.line}: {told.message} {told.fix}", err=True)
    return made


async def _catalog_paths(client: Client) -> set[str]:
    found: set[str] = set()
    cursor: str | None = None
    while True:
        page = await client.playbooks(cursor=cursor, limit=1_000)
        found.update(one.path for one in page.playbooks)
        cursor = page.next
        if cursor is None:
            return found
