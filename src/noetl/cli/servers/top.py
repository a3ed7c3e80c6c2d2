"""`noetl top`: watch a server live in the terminal.

Tested in tests/acceptance/servers/test_top_cli.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import to_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.target import connect, require_server
from noetl.cli.runtime.terminal import echo

if TYPE_CHECKING:
    from asyncio import Event

    from rich.console import Console

    from noetl import Client
    from noetl.cli.output.top_readings import Reading

_WINDOW_MS = 30_000  # that rates and the slowest steps are of
_HINT = "Start one with `noetl up`."


def command(
    interval: Annotated[
        float, typer.Option("--interval", min=0.2, max=60.0, help="Seconds between two reads. [default: 2]")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and exit.")] = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Watch a server: executions, queues, workers, rates, slowest steps, failures.

    `q` or Ctrl-C ends it. `--once` prints one frame for scripts, `--json` the numbers of one frame. Rates and steps are those
    of the one server that answers; everything else is of all servers on its store.
    """

    async def job() -> None:
        found = require_server(server, _HINT)
        async with connect(found) as client:
            if json:
                await _print_json(client)
            elif once or not sys.stdout.isatty():
                await _print_frame(client, found.url)
            else:
                await _watch(client, found.url, interval)

    with suppress(KeyboardInterrupt):
        call(job)


async def _print_json(client: Client) -> None:
    from msgspec import to_builtins

    from noetl.cli.output.top_readings import read, slowest_steps

    reading = await read(client)
    steps = [] if reading.counted is None else slowest_steps(reading.counted.durations)
    shown = {name: to_builtins(value) for name, value in reading._asdict().items() if name != "counted"}
    totals = {} if reading.counted is None else reading.counted._asdict()
    totals.pop("durations", None)
    echo(to_json({**shown, "totals": totals, "slowest_steps": [one._asdict() for one in steps]}))


async def _print_frame(client: Client, url: str) -> None:
    from rich.console import Console

    from noetl.cli.output.top_frame import frame
    from noetl.cli.output.top_readings import read, slowest_steps

    reading = await read(client)
    steps = [] if reading.counted is None else slowest_steps(reading.counted.durations)
    Console(highlight=False).print(frame(reading, url, None, steps))


async def _watch(client: Client, url: str, interval: float) -> None:
    """Show a frame after each interval; a server that does not answer is shown, too."""
    import asyncio

    from rich.console import Console
    from rich.live import Live

    from noetl.cli.output.top_readings import read
    from noetl.model.errors import NoetlError

    console, stopping = Console(highlight=False), asyncio.Event()
    before: list[Reading] = []
    with _keys(stopping), Live(console=console, screen=True, auto_refresh=False) as live:
        while not stopping.is_set():
            try:
                now = await read(client)
                before = [*(one for one in before if one.at > now.at - _WINDOW_MS), now]
                live.update(_shown(before, url, console), refresh=True)
            except NoetlError as error:
                from rich.text import Text

                live.update(Text(f"noetl top  {url}\n\n{error}\n\nIt is asked again."), refresh=True)
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), interval)


def _shown(reads: list[Reading], url: str, console: Console) -> Any:
    from noetl.cli.output.top_frame import frame
    from noetl.cli.output.top_readings import rates, slowest_steps

    now = reads[-1]
    then = reads[0].counted if len(reads) > 1 else None
    if now.counted is None or then is None:
        steps = [] if now.counted is None else slowest_steps(now.counted.durations)
        return frame(now, url, None, steps, console.height)
    found = rates(now.counted, then)
    return frame(now, url, found, found.slowest, console.height)


@contextmanager
def _keys(stopping: Event) -> Iterator[None]:
    """Set an event when `q` is pressed, if the input is a terminal."""
    import asyncio

    if not sys.stdin.isatty():
        yield
        return
    import os
    import termios
    import tty

    number = sys.stdin.fileno()
    mode = termios.tcgetattr(number)

    def pressed() -> None:
        if b"q" in os.read(number, 64):
            stopping.set()

    tty.setcbreak(number)
    asyncio.get_running_loop().add_reader(number, pressed)
    try:
        yield
    finally:
        asyncio.get_running_loop().remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, mode)
