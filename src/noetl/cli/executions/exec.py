"""`noetl exec`: start one or many executions on a server.

Prints the IDs, or with `--wait` and `--follow` what `noetl run` prints. Exit codes are those of `noetl run`; of many executions,
the code of the first that did not complete, or 1 if a limit rejected one. Tested in tests/acceptance/executions/test_exec_each.py.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from noetl.cli.arguments.completers import complete_playbook
from noetl.cli.arguments.options import FOREVER, AsJson, Payload, Place, Quiet, SetValue, parse_wait
from noetl.cli.arguments.payload import BatchItem, read_batch, read_payload
from noetl.cli.output.format import to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput, NoetlError

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.answers import Started

_MAX_ITEMS: Final = 1_000  # of one request
_MAX_BYTES: Final = 4 * 1024 * 1024
_REJECTED: Final = "rejected"  # by a limit with `on_limit: reject`
_PAYLOAD_PATH: Final = re.compile(r"\$\.payloads\[(\d+)\]")

Each = Annotated[
    str | None,
    typer.Option(
        "--each",
        metavar="FILE",
        help="Start one execution per JSON object in this file, one per line or in an array; `-` reads stdin. "
        "`--set` and `--payload` are the defaults of each.",
    ),
]
Wait = Annotated[
    str | None,
    typer.Option(
        "--wait",
        metavar="[=SECONDS]",
        help="Wait for the end and print the result: `--wait=SECONDS`, or `--wait` without a limit.",
    ),
]

Trace = Annotated[
    bool,
    typer.Option("--trace", help="Send the trace of the execution, whatever the sample rate; print its ID."),
]


def command(
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="Path of the playbook in the catalog.", autocompletion=complete_playbook),
    ],
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="Version of the playbook. [default: the latest]")
    ] = None,
    set: SetValue = None,
    payload: Payload = None,
    each: Each = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Tag to find the execution by; repeatable.")] = None,
    priority: Annotated[int, typer.Option("--priority", help="Priority; higher is scheduled first.")] = 0,
    key: Annotated[
        str | None,
        typer.Option(
            "--key", metavar="KEY", help="Idempotency key: a second start with it returns the same execution."
        ),
    ] = None,
    wait: Wait = None,
    trace: Trace = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show progress and what tasks print while waiting.")
    ] = False,
    quiet: Quiet = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Start one or many executions on a server."""

    async def job() -> int:
        from noetl.cli.runtime.target import connect, require_server

        wait_s = parse_wait(wait) if wait is not None else FOREVER if follow else None
        target = require_server(server, "`noetl run FILE` runs a playbook on this machine.")
        if each is not None and follow:
            raise InvalidInput("--follow shows one execution. With --each, use --wait or `noetl events ID --follow`.")
        options = {"path": path, "version": version, "tags": tag or (), "priority": priority, "idempotency_key": key}
        options |= {"trace": _new_traceparent() if trace else None}
        async with connect(target) as client:
            data = read_payload(set or [], payload, await _declared(client, path, version) if set else None)
            batch = None if each is None else read_batch(each, data)
            started = _start_one(client, data, options) if batch is None else _start_batch(client, batch, options)
            show = None if json or not follow else "progress" if quiet else "output"
            return await _report(client, started, target.url, wait_s, show=show, as_json=json)

    raise typer.Exit(call(job))


async def _declared(client: Client, path: str, version: int | None) -> dict[str, Any]:
    """Return the declared workload of a playbook; None for a key without a default."""
    form = await client.ui_schema(path, version)
    return dict.fromkeys(form.schema["properties"]) | form.defaults


def _new_traceparent() -> str:
    from secrets import token_hex

    from noetl.trace_context import new_trace

    trace_id = token_hex(16)
    echo(f"trace {trace_id}", err=True)
    return new_trace(trace_id)


async def _start_one(
    client: Client, payload: Mapping[str, Any], options: Mapping[str, Any]
) -> AsyncIterator[list[Started]]:
    yield [await client.execute(payload=payload, **options)]


async def _start_batch(
    client: Client, batch: list[BatchItem], options: Mapping[str, Any]
) -> AsyncIterator[list[Started]]:
    started, key = 0, options["idempotency_key"]
    for number, part in enumerate(_split(batch)):
        part_key = f"{key}/{number}" if key and number else key
        try:
            answer = await client.execute_many(
                payloads=[item.payload for item in part], **{**options, "idempotency_key": part_key}
            )
        except NoetlError as error:
            more = f" {started} of {len(batch)} executions have started, the others have not." if started else ""
            raise type(error)(_name_places(str(error), part) + more) from None
        started += len(part)
        for item, one in zip(part, answer.executions, strict=True):
            if one.status == _REJECTED:
                echo(f"{item.place}: not started: {one.error['message']}", err=True)
        yield answer.executions


def _name_places(message: str, part: list[BatchItem]) -> str:
    return _PAYLOAD_PATH.sub(lambda found: part[int(found[1])].place, message)


def _split(batch: list[BatchItem]) -> Iterator[list[BatchItem]]:
    part: list[BatchItem] = []
    size = 0
    for item in batch:
        own = len(msgspec.json.encode(item.payload))
        if part and (len(part) == _MAX_ITEMS or size + own > _MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(item)
        size += own
    if part:
        yield part


async def _report(
    client: Client,
    started: AsyncIterator[list[Started]],
    url: str,
    wait_s: float | None,
    *,
    show: str | None,
    as_json: bool,
) -> int:
    ids, left_out = list[str](), 0
    async for part in started:
        begun = [one for one in part if one.status != _REJECTED]
        ids += [one.execution_id for one in begun]
        left_out = left_out or int(len(begun) < len(part))
        if wait_s is None:
            echo("\n".join([to_json(one) for one in part] if as_json else [one.execution_id for one in begun]))
    if wait_s is None:
        return left_out
    deadline, codes = monotonic() + wait_s, list[int]()
    for execution_id in ids:
        echo(f"execution {execution_id} on {url}", err=True)
        remaining = max(0.0, deadline - monotonic())
        codes.append(await _follow(client, execution_id, remaining, show=show, as_json=as_json))
    return next((code for code in codes if code), left_out)


async def _follow(client: Client, execution_id: str, limit_s: float, *, show: str | None, as_json: bool) -> int:
    from asyncio import CancelledError, timeout
    from contextlib import suppress

    from noetl.cli.output.progress import make_progress
    from noetl.cli.output.summary import exit_code, print_end
    from noetl.client.history import RemoteHistory
    from noetl.engine.decision.builder import status_of
    from noetl.engine.state.evolve import evolve
    from noetl.engine.state.execution import Execution

    state, progress = Execution(execution_id), make_progress(silent=show is None, quiet=show == "progress")
    try:
        with suppress(TimeoutError):
            async with timeout(None if limit_s == FOREVER else limit_s):
                async for event in client.follow(execution_id):
                    evolve(state, event)
                    progress.update(event, state)
    except CancelledError:  # Ctrl-C
        told = f"Stopped watching. Execution {execution_id} goes on: `noetl events {execution_id} --follow` watches it again, "
        echo(f"{told}`noetl cancel {execution_id}` ends it.", err=True)
        raise
    finally:
        progress.close()
    if as_json or state.phase == "ended":
        await print_end(RemoteHistory(client), state, as_json=as_json)
    else:
        echo(f"{status_of(state)}; keep watching with `noetl events {execution_id} --follow`", err=True)
    return exit_code(state)
