"""`noetl record`: keeps what the tasks of a real run came to, as a cassette for `noetl test`.

Secrets are masked. With `--test` a first file of tests is written beside it, which expects what the run came to. Exit code
0: written; 2: it could not be. What a cassette holds is `noetl.testing.cases.recording`. Tested in
tests/acceptance/test_record_cli.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.completers import Id
from noetl.cli.common.store import Place, local_settings, reading, the_id
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.ports import History
    from noetl.testing.cases.recording import Load, Log


def command(
    id: Id,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The cassette; else it is printed.")
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option("--test", metavar="FILE", help="Also write a first file of tests that plays the cassette."),
    ] = None,
    store: Place = None,
) -> None:
    """Keep what the tasks of an execution came to, for tests."""
    if test is not None and output is None:
        typer.echo("noetl: `--test` plays a cassette that is a file; name it with `-o FILE`.", err=True)
        raise typer.Exit(2)

    async def job(opened: History) -> None:
        from noetl.testing.cases.cassette import first_test, written
        from noetl.testing.cases.recording import cassette

        main, *children = await _logs(opened, await _meant(opened, id))
        made = await cassette(main, children, _loader(opened, store))
        for note in made.get("notes") or ():
            typer.echo(f"noetl: {note}", err=True)
        if output is None:
            typer.echo(written(made), nl=False)
            return
        _write(output, written(made))
        if test is not None:
            _write(test, first_test(made, main.events, output.name))

    reading(store, job)


async def _meant(opened: History, given: str) -> str:
    """Give the execution that is meant: `last` is the last one that nobody else's task started."""
    found = await the_id(opened, given)
    while given == "last":
        events = await opened.read(found, limit=1)
        parent = (events[0].payload.get("parent") if events else None) or {}
        if not parent.get("execution_id"):
            break
        found = str(parent["execution_id"])
    return found


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{file}: it cannot be written: {error.strerror or error}") from None
    typer.echo(f"noetl: wrote {file}", err=True)


async def _logs(opened: History, execution_id: str) -> list[Log]:
    """Give the log of an execution, and those of its children behind it."""
    from noetl.dsl.pin import unpinned
    from noetl.testing.cases.recording import Log

    events = await opened.read(execution_id)
    if not events:
        return []
    canonical = await opened.canonical(str(events[0].payload.get("playbook")))
    if canonical is None:
        raise InvalidInput(f"the playbook of execution {execution_id} is not there any more")
    found = [Log(unpinned(canonical), events)]
    for child in [event.entity_id for event in events if event.event_type == "child.started"]:
        found += await _logs(opened, child)
    return found


def _loader(opened: History, place: str | None) -> Load:
    """Give what loads stored results: from the blobs of the store, or from the server."""
    client = getattr(opened, "client", None)
    if client is not None:
        from noetl.testing.cases.cassette import fetched

        return lambda reference: fetched(reference, client.result)

    async def load(reference: Mapping[str, Any]) -> Any:
        from noetl.wiring import SystemClock, open_blobs
        from noetl.worker.results import StoredResults

        opened_store: Any = opened
        return await StoredResults(open_blobs(local_settings(place), opened_store), SystemClock()).load(reference)

    return load
