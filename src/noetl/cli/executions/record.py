"""`noetl record`: record task results as a cassette for `noetl test`.

Secrets are masked. `--test` also writes a first test file that expects the results of the run. Exit code 2: a file could not be
written. The format is in `noetl.testing.cases.cassettes.recording`. Tested in tests/acceptance/executions/test_record_cli.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.options import ExecutionId, Place
from noetl.cli.runtime.store import local_settings, read_history, resolve_id
from noetl.cli.runtime.terminal import echo, echo_document
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.ports import History
    from noetl.testing.cases.cassettes.recording import Load, Log


def command(
    id: ExecutionId,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the cassette to this file. [default: stdout]"),
    ] = None,
    test: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="Also write a first test file that uses the cassette.")
    ] = None,
    store: Place = None,
) -> None:
    """Record the task results of an execution for tests."""
    if test is not None and output is None:
        echo("noetl: --test needs a cassette file. Name it with -o FILE.", err=True)
        raise typer.Exit(2)

    async def job(history: History) -> None:
        from noetl.testing.cases.cassettes.cassette import first_test, written
        from noetl.testing.cases.cassettes.recording import cassette

        main, *children = await _read_logs(history, await resolve_id(history, id))
        made = await cassette(main, children, _result_loader(history, store))
        for note in made.get("notes") or ():
            echo(f"noetl: {note}", err=True)
        if output is None:
            echo_document(written(made))
            return
        _write(output, written(made))
        if test is not None:
            _write(test, first_test(made, main.events, output.name))

    read_history(store, job)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"Cannot write {file}: {error.strerror or error}.") from None
    echo(f"noetl: wrote {file}", err=True)


async def _read_logs(history: History, execution_id: str) -> list[Log]:
    from noetl.dsl.tree.pin import unpinned
    from noetl.testing.cases.cassettes.recording import Log

    events = await history.read(execution_id)
    if not events:
        return []
    canonical = await history.canonical(str(events[0].payload.get("playbook")))
    if canonical is None:
        raise InvalidInput(f"The playbook of execution {execution_id} is no longer in the catalog.")
    logs = [Log(unpinned(canonical), events)]
    for child in [event.entity_id for event in events if event.event_type == "child.started"]:
        logs += await _read_logs(history, child)
    return logs


def _result_loader(history: History, place: str | None) -> Load:
    client = getattr(history, "client", None)
    if client is not None:
        from noetl.testing.cases.cassettes.cassette import fetched

        return lambda reference: fetched(reference, client.result)

    async def load(reference: Mapping[str, Any]) -> Any:
        from noetl.wiring.embedded import open_blobs
        from noetl.worker.steps.results import StoredResults

        store: Any = history
        return await StoredResults(open_blobs(local_settings(place), store), store.clock).load(reference)

    return load
