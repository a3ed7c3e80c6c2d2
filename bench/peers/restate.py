"""Restate: one server node, and a Python service that it calls over HTTP/2.

A step is a `ctx.run` that the server's log records. W2 fans out to 1,000 of these inside one invocation, the faster of its
two ways (the other one is 1,000 calls of another handler). R2 goes in waves of as many requests as the others have in flight:
a handler may wait for its steps only by the means of the library.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from subprocess import Popen
from typing import Any

import httpx
import hypercorn.asyncio
import hypercorn.config
import restate
from psycopg_pool import AsyncConnectionPool

from bench.peers import side
from bench.peers.side import SHORT, Given, Seen, again, given, killed, measure, process, seconds, until
from bench.peers.web import web_server

MODULE = "bench.peers.restate"
SERVER = Path(sys.prefix) / "npm" / "node_modules" / ".bin" / "restate-server"
CONNECTIONS = 20
TOLD = given()


def serve(told: Given, port: int) -> None:
    """Be the service."""
    service = restate.Service("bench")

    async def noop() -> int:
        return 1

    async def marked(number: int) -> int:
        side.mark(told.marks, number)
        await asyncio.sleep(side.STEP_S)
        return number

    async def in_a_row(ctx: restate.Context, steps: int) -> int:
        for _ in range(steps):
            await ctx.run_typed("step", noop)
        return steps

    async def fan_out(ctx: restate.Context, items: int) -> int:
        futures = [ctx.run_typed("step", noop) for _ in range(items)]
        await restate.gather(*futures)
        return sum([await future for future in futures])

    async def marks_in_a_row(ctx: restate.Context, steps: int) -> int:
        for number in range(steps):
            await ctx.run_typed("step", marked, number=number)
        return steps

    for function in (in_a_row, fan_out, marks_in_a_row, *real_handlers(told)):
        service.handler()(function)
    config = hypercorn.config.Config()
    config.bind, config.loglevel = [f"127.0.0.1:{port}"], "warning"
    asyncio.run(hypercorn.asyncio.serve(restate.app(services=[service]), config))


def real_handlers(told: Given) -> list[Any]:
    """Return the handlers of R1 to R5."""
    clients: dict[str, Any] = {}

    async def fetch(url: str) -> Any:
        client = clients.setdefault("http", httpx.AsyncClient())
        return (await client.get(url)).json()

    async def save(amount: int) -> None:
        if "pool" not in clients:
            clients["pool"] = AsyncConnectionPool(told.database, min_size=4, max_size=10, open=False)
            await clients["pool"].open()
        async with clients["pool"].connection() as connection:
            await connection.execute(side.INSERT, (amount,))

    async def add(number: int) -> int:
        return side.add(number)

    async def item_total(item: dict[str, int]) -> int:
        return side.total(item)

    async def adding(ctx: restate.Context, steps: int) -> int:
        number = 0
        for _ in range(steps):
            number = await ctx.run_typed("add", add, number=number)
            if number < 0:
                break
        return number

    async def fetching(ctx: restate.Context, items: int) -> int:
        url, found = Path(told.folder, "web").read_text(), 0
        for at in range(0, items, side.AT_ONCE):
            wave = range(at, min(at + side.AT_ONCE, items))
            got = [ctx.run_typed("get", fetch, url=f"{url}/item/{number}") for number in wave]
            await restate.gather(*got)
            totals = [ctx.run_typed("total", item_total, item=await one) for one in got]
            await restate.gather(*totals)
            found += sum([await one for one in totals])
        return found

    async def saving(ctx: restate.Context, _size: int) -> None:
        url = Path(told.folder, "web").read_text()
        item = await ctx.run_typed("get", fetch, url=f"{url}/item/7")
        amount = await ctx.run_typed("total", item_total, item=item)
        await ctx.run_typed("save", save, amount=amount)

    async def adding_each(ctx: restate.Context, rows: int) -> int:
        futures = [ctx.run_typed("add", add, number=number) for number in range(rows)]
        await restate.gather(*futures)
        return sum([await future for future in futures])

    return [adding, fetching, saving, adding_each]


class System:
    """Server and service, and one connection to them."""

    def __init__(self, told: Given, stack: ExitStack) -> None:
        self.told, self.stack = told, stack
        self.ports = {name: side.free_port() for name in ("ingress", "admin", "node", "service")}
        environment = {"RESTATE_DISABLE_TELEMETRY": "true", "RESTATE_BIND_ADDRESS": self.place("node")}
        for name in ("ingress", "admin"):
            environment[f"RESTATE_{name.upper()}__BIND_ADDRESS"] = self.place(name)
        arguments = [
            "--no-logo",
            "--base-dir",
            str(told.folder / "data"),
            "--bind-ip",
            "127.0.0.1",
            "--listen-mode",
            "tcp",
        ]
        stack.enter_context(process([str(SERVER), *arguments], told, name="server", **environment))
        self.service = self.start()
        until(lambda: side.answers(f"http://{self.place('admin')}/health"))
        until(lambda: side.answers(f"http://{self.place('ingress')}/restate/health"))
        until(self._registered, every=0.05)
        self.connection = HTTPConnection(self.place("ingress"))

    def place(self, name: str) -> str:
        return f"127.0.0.1:{self.ports[name]}"

    def start(self) -> Popen[bytes]:
        command = again(self.told, MODULE, f"service-{self.ports['service']}")
        return self.stack.enter_context(process(command, self.told))

    def _registered(self) -> bool:
        connection = HTTPConnection(self.place("admin"))
        body = json.dumps({"uri": f"http://{self.place('service')}", "force": True})
        try:
            connection.request("POST", "/deployments", body, {"Content-Type": "application/json"})
            return connection.getresponse().status < 300
        except OSError:
            return False
        finally:
            connection.close()

    def call(self, path: str, number: int) -> Any:
        self.connection.request("POST", f"/bench/{path}", str(number), {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status < 300, text
        return json.loads(text)


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str, body: str = "") -> bytes:
    """Ask over a connection that is kept."""
    fields = f"Host: bench\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    writer.write(f"{head} HTTP/1.1\r\n{fields}\r\n\r\n{body}".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer[9:10] == b"2", answer
    length = re.search(rb"(?i)content-length: (\d+)", answer)
    assert length, answer
    return await reader.readexactly(int(length[1]))


async def burst(place: str, count: int, handler: str = "in_a_row", number: int = SHORT) -> None:
    """Send invocations over several connections, then wait for the result of each."""
    host, port = place.split(":")
    left = iter(range(count))

    async def some() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        sent = [json.loads(await ask(reader, writer, f"POST /bench/{handler}/send", str(number))) for _ in left]
        for one in sent:
            await ask(reader, writer, f"GET /restate/invocation/{one['invocationId']}/attach")
        writer.close()

    await asyncio.gather(*(some() for _ in range(CONNECTIONS)))


@contextmanager
def running(told: Given) -> Iterator[System]:
    with ExitStack() as stack:
        yield System(told, stack)


def measured(told: Given) -> Seen:
    begun = time.perf_counter()
    with running(told) as system:
        if told.workload == "W6":
            system.call("marks_in_a_row/send", told.size)
            return killed(told, system.service, system.start)
        system.call("in_a_row", 1)
        if told.workload == "W5":
            return {"seconds": time.perf_counter() - begun}
        system.call("in_a_row", 5)
        match told.workload:
            case "W1":
                return {"seconds": seconds(lambda: system.call("in_a_row", told.size))}
            case "W2":
                system.call("fan_out", 5)
                return {"seconds": seconds(lambda: system.call("fan_out", told.size))}
            case "W3":
                return {"seconds": seconds(lambda: asyncio.run(burst(system.place("ingress"), told.size)))}
            case _:
                return {"times": [seconds(lambda: system.call("in_a_row", 1)) for _ in range(told.size)]}


def real(told: Given) -> Seen:
    """Measure R1 to R5: the server, the service and this process are counted."""
    side.create_totals(told)
    with web_server() as url, running(told) as system:
        Path(told.folder, "web").write_text(url)
        if told.workload == "R4":
            system.call("adding", 1)
            return {"times": [seconds(lambda: system.call("adding", 1)) for _ in range(told.size)]}
        job: dict[str, Callable[[int], Any]] = {
            "R1": lambda size: system.call("adding", size),
            "R2": lambda size: system.call("fetching", size),
            "R3": lambda size: asyncio.run(burst(system.place("ingress"), size, "saving", 0)),
            "R5": lambda size: system.call("adding_each", size),
        }
        job[told.workload](5)
        return side.cost_of_all(lambda: job[told.workload](told.size))


if __name__ == "__main__":
    if TOLD.workload.startswith("service-"):
        serve(TOLD, int(TOLD.workload.split("-")[1]))
    else:
        workloads = dict.fromkeys(("W1", "W2", "W3", "W4", "W5", "W6"), measured)
        measure(TOLD, workloads | dict.fromkeys(("R1", "R2", "R3", "R4", "R5"), real))
