"""Actions of every trigger command: list, show, pause, resume and delete.

A command describes its noun once, as `TriggerNoun`, and adds the actions in the order of its help. Tested in
tests/acceptance/triggers and tests/acceptance/test_actions.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, Protocol, TypeVar

import typer

from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo

if TYPE_CHECKING:
    from noetl import Client

PAGE: Final = 500
Paused = Annotated[bool, typer.Option("--paused", help="Create it paused.")]
Row = TypeVar("Row")
T = TypeVar("T")


class Made(Protocol):
    """A row that says who made it."""

    @property
    def owner(self) -> str: ...

    @property
    def created_by(self) -> str: ...


@dataclass(frozen=True)
class TriggerNoun(Generic[Row]):
    """What the actions need to know of a noun: its name, its calls and its lines."""

    name: str
    hint: str  # why it needs a server
    page: Callable[[Client, str | None, str | None], Awaitable[tuple[list[Row], str | None]]]  # of a path and a cursor
    find: Callable[[Client, str], Awaitable[Row]]
    pause: Callable[[Client, str], Awaitable[Row]]
    resume: Callable[[Client, str], Awaitable[Row]]
    delete: Callable[[Client, str], Awaitable[object]]
    line: Callable[[Row], str]  # in a list
    changed: Callable[[Row], str]  # after what was done: `paused webhook …`

    @property
    def id(self) -> Any:
        """Argument of an action: the id."""
        help = f"{self.name.capitalize()} ID, as `noetl {self.name} list` prints it."
        return typer.Argument(metavar="ID", help=help)

    def on_server(self, place: str | None, job: Callable[[Client], Awaitable[T]]) -> T:
        """Connect to the server of the command and run a job with its client."""

        async def connected_job() -> T:
            from noetl.cli.runtime.target import connect, require_server

            async with connect(require_server(place, f"{self.hint}: start one with `noetl up`.")) as client:
                return await job(client)

        return call(connected_job)

    def print_changed(self, row: Row, what: str, json: bool) -> None:
        """Print what was done to a trigger, and with `--json` its row."""
        if json:
            echo(to_json(row))
        echo(f"{what} {self.name} {self.changed(row)}", err=True)


def add_list(group: typer.Typer, noun: TriggerNoun[Row], summary: str, *, by_path: bool = True) -> None:
    """Add `list`, with `--path` unless the paths are patterns."""

    def list_of_path(
        path: str | None = typer.Option(None, "--path", metavar="PATH", help=f"Only {noun.name}s of this playbook."),
        json: AsJson = False,
        server: Place = None,
    ) -> None:
        async def job(client: Client) -> None:
            cursor, count = None, 0
            while True:
                rows, cursor = await noun.page(client, path, cursor)
                count += len(rows)
                for row in rows:
                    echo(to_json(row) if json else noun.line(row))
                if cursor is None:
                    break
            if not count and not json:
                echo(f"no {noun.name}s", err=True)

        noun.on_server(server, job)

    def list_all(json: AsJson = False, server: Place = None) -> None:
        list_of_path(None, json, server)

    group.command("list", help=summary)(list_of_path if by_path else list_all)


def add_show(group: typer.Typer, noun: TriggerNoun[Row], summary: str, lines: Callable[[Row], Iterable[str]]) -> None:
    """Add `show`, which prints some lines about a row."""

    @group.command("show", help=summary)
    def show(id: str = noun.id, json: AsJson = False, server: Place = None) -> None:
        async def job(client: Client) -> None:
            row = await noun.find(client, id)
            for line in [to_json(row)] if json else lines(row):
                echo(line)

        noun.on_server(server, job)


def add_changes(group: typer.Typer, noun: TriggerNoun[Row], *, pause: str, resume: str, delete: str) -> None:
    """Add `pause`, `resume` and `delete` with their summaries."""

    @group.command("pause", help=pause)
    def pause_one(id: str = noun.id, json: AsJson = False, server: Place = None) -> None:
        change(noun.pause, id, "paused", json, server)

    @group.command("resume", help=resume)
    def resume_one(id: str = noun.id, json: AsJson = False, server: Place = None) -> None:
        change(noun.resume, id, "resumed", json, server)

    def change(
        ask: Callable[[Client, str], Awaitable[Row]], id: str, what: str, json: bool, server: str | None
    ) -> None:
        async def job(client: Client) -> None:
            noun.print_changed(await ask(client, id), what, json)

        noun.on_server(server, job)

    @group.command("delete", help=delete)
    def delete_one(id: str = noun.id, json: AsJson = False, server: Place = None) -> None:
        async def job(client: Client) -> None:
            await noun.delete(client, id)
            if json:
                echo(to_json({f"{noun.name}_id": id, "deleted": True}))
            echo(f"deleted {noun.name} {id}", err=True)

        noun.on_server(server, job)


def maker(row: Made, field: str = "triggers") -> str:
    """Return who made a trigger: a playbook in one of its fields, or a caller."""
    return f"{field} of {row.owner}" if row.owner else row.created_by or "-"
