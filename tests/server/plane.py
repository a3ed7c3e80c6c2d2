"""Control plane in its own process, controlled by lines on standard input.

    python -m tests.server.plane STORE

Used by tests/server/workers/test_two_planes.py, which kills it.
"""

from __future__ import annotations

import asyncio
import logging
import sys

import msgspec

from noetl.clock import SteadyClock
from noetl.model.errors import NoetlError
from noetl.model.messages import AnyMessage, Report
from noetl.model.work import Lease
from noetl.server.control_plane import LocalControlPlane
from noetl.stores.sqlite.store import SqliteStore
from tests.polling import report_wait

LEASE_S = 1.0


class Ask(msgspec.Struct, omit_defaults=True):
    number: int
    do: str  # submit, claim, report, heartbeat, playbook
    about: str = ""  # an execution, a worker or a playbook
    message: AnyMessage | None = None
    report: Report | None = None
    most: int = 0
    wait_s: float = 0.0
    held: list[tuple[str, int]] = []


class Answer(msgspec.Struct, omit_defaults=True):
    number: int
    leases: list[Lease] = []
    gone: list[str] = []
    content: bytes = b""
    error: str = ""


_ask = msgspec.json.Decoder(Ask)


async def answered(control: LocalControlPlane, ask: Ask) -> Answer:
    number = ask.number
    try:
        if ask.do == "claim":
            return Answer(number, leases=await control.claim(ask.about, [""], ask.most, ask.wait_s))
        if ask.do == "heartbeat":
            return Answer(number, gone=await control.heartbeat(ask.about, ask.held))
        if ask.do == "playbook":
            return Answer(number, content=await control.playbook(ask.about))
        if ask.report is not None:
            return Answer(number, leases=(await report_wait(control.report, ask.about, ask.report, ask.most)).leases)
        assert ask.message is not None
        await control.submit(ask.about, ask.message)
        return Answer(number)
    except NoetlError as error:
        return Answer(number, error=f"{type(error).__name__}: {error}")


async def main(path: str) -> None:
    logging.disable(logging.CRITICAL)
    lines = asyncio.StreamReader(limit=2**24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    store = SqliteStore(path)
    tasks: set[asyncio.Task[None]] = set()
    async with LocalControlPlane(store, SteadyClock(), lease_s=LEASE_S, max_attempts=1_000, look_s=0.02) as control:

        async def answer(ask: Ask) -> None:
            found = await answered(control, ask)
            sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
            sys.stdout.buffer.flush()

        while line := await lines.readline():
            task = asyncio.create_task(answer(_ask.decode(line)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
