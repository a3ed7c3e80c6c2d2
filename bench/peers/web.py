"""A small web server: `GET /item/7` gives an item as JSON, `/wait/20` after 20 ms.

It uses the standard library alone, and little of it: it must not be what is measured.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.peers.side import ROOT


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path, _, number = head.split(b" ", 2)[1].rpartition(b"/")
            if path == b"/wait":
                await asyncio.sleep(int(number) / 1000)
            body = b'{"id": %s, "price": 3, "count": 4}' % number
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
            writer.write(body)
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


@contextmanager
def web_server() -> Iterator[str]:
    """Run the server in a process of its own; gives its URL."""
    command = [sys.executable, "-m", "bench.peers.web"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(_serve())
