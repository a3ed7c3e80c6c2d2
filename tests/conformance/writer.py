"""Process that commits until it is killed, and prints acknowledged commits."""

from __future__ import annotations

import asyncio
import sys

from noetl.ports import Claim, Commit
from noetl.stores.sqlite.store import SqliteStore
from tests.conformance.commits import commit, signal, work


async def main(path: str) -> None:
    store = SqliteStore(path)
    last = 0
    held: tuple[tuple[str, int], ...] = ()
    while True:
        name = f"w{last}"
        one = commit(
            "1",
            last,
            count=3,
            work=(work(name),),
            finished=held,
            timers=((f"t{last}", last),),
            inbox=(("1", signal(str(last))),),
            projection={"status": "running", "seq": last + 3},
        )
        receipt = await store.commit([one, Commit("2", 0, ())], [Claim("w", ("",), 1, 1, 10)])
        [[lease]] = receipt.leases
        held = ((lease.work.work_id, lease.epoch),)
        last += 3
        print(last, lease.work.work_id, lease.epoch, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
