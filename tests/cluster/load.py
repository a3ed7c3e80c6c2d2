"""Executions for a cluster under faults, and what must be true of them afterwards.

A mixed one has steps in a row, a loop over several workers, a child, a task that is tried again, one that sleeps, and a
join. What its tasks did is in the ledger, with the idempotency keys; what the cluster says of it is in the database.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import psycopg

from noetl import Client
from noetl.model.errors import StoreUnavailable
from noetl.model.events import Event
from noetl.server.background.rebuild import Rebuild
from noetl.server.cache.plan_cache import PlanCache
from noetl.stores.postgres.admin import PostgresAdmin
from noetl.stores.postgres.derived import PostgresDerived
from noetl.stores.postgres.store import PostgresStore
from tests.cluster.cluster import Cluster
from tests.cluster.ledger import Ledger
from tests.simulation.invariants import check_all

Result = TypeVar("Result")
PATIENCE_S = 120.0
ITEMS = 12
HEAD = (
    "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {{name: {0}, path: faults/{0}}}\nworkload: {{api: '', n: 0}}\n"
)
_AT = "'{{ workload.api }}/%s/{{ workload.n }}/%s'"
_AGAIN = "spec: {policy: {rules: [{when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 5, delay: 0.05}}]}}"


def _do(where: str, how: str = "do") -> str:
    return f"kind: http, method: POST, url: {_AT % (how, where)}"


CHILD = HEAD.format("child") + (
    "workflow:\n"
    f"  - {{step: one, tool: {{{_do('child-one')}}}, next: two}}\n"
    f"  - {{step: two, tool: {{{_do('child-two')}}}}}\n"
)
MIXED = HEAD.format("mixed") + (
    "workflow:\n"
    f"  - {{step: first, tool: {{{_do('first')}}}, next: second}}\n"
    f"  - {{step: second, tool: {{{_do('second')}}}, next: [each, call, again, nap, big]}}\n"
    f"  - {{step: each, loop: {{in: '{{{{ range({ITEMS}) | list }}}}', iterator: i,"
    f" spec: {{mode: parallel, max_in_flight: 6}}}}, tool: {{{_do('item-{{ iter.i }}')}}}, next: meet}}\n"
    "  - {step: call, tool: {kind: playbook, path: faults/child,"
    " input: {api: '{{ workload.api }}', n: '{{ workload.n }}'}}, next: meet}\n"
    f"  - {{step: again, tool: {{{_do('again', 'flaky')}, {_AGAIN}}}, next: meet}}\n"
    "  - {step: nap, tool: {kind: sleep, seconds: 0.3}, next: meet}\n"
    f"  - {{step: big, tool: {{{_do('big')}}}, next: meet}}\n"
    f"  - {{step: meet, tool: {{{_do('meet')}}}, next: last}}\n"
    f"  - {{step: last, tool: {{{_do('last')}, json: {{seen: '{{{{ big.data.text | length }}}}'}}}}}}\n"
)
SLOW = HEAD.format("slow") + f"workflow:\n  - {{step: it, tool: {{{_do('it', 'slow')}}}}}\n"
STEPS = ("first", "second", "each", "call", "again", "nap", "big", "meet", "last")
EFFECTS = {
    *(f"/do/%s/{name}" for name in ("first", "second", "big", "meet", "last", "child-one", "child-two")),
    *(f"/do/%s/item-{item}" for item in range(ITEMS)),
    "/flaky/%s/again",
}


_HELD: dict[str, set[str]] = defaultdict(set)  # database → executions that have ended and were held to everything


async def surely(act: Callable[[], Awaitable[Result]]) -> Result:
    """Do what is harmless to repeat until it is answered."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await act()
            except StoreUnavailable:  # also what cannot be reached
                await asyncio.sleep(0.05)


async def until(look: Callable[[], Awaitable[Result]], fits: Callable[[Result], bool], what: str) -> Result:
    """Look until what is seen fits."""
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while not fits(found := await look()):
        assert asyncio.get_running_loop().time() < end, f"{what} did not come: {found}"
        await asyncio.sleep(0.05)
    return found


class Load:
    """Executions that were started, and what is known of them."""

    def __init__(self, system: Cluster, ledger: Ledger, clients: Sequence[Client]) -> None:
        self.system = system
        self.ledger = ledger
        self.clients = clients
        self.mixed: dict[str, str] = {}  # execution → its number
        self.others: dict[str, str] = {}

    async def register(self, *contents: str) -> None:
        for content in contents:
            await surely(lambda text=content: self.clients[0].register(text))  # type: ignore[misc]

    async def start(self, count: int) -> list[str]:
        """Start mixed executions at all servers in turn."""
        return list(await asyncio.gather(*(self._start(len(self.mixed) + number) for number in range(count))))

    async def _start(self, number: int) -> str:
        client, key = self.clients[number % len(self.clients)], os.urandom(8).hex()
        given = {"api": self.ledger.url, "n": key}
        started = await surely(lambda: client.execute("faults/mixed", given, idempotency_key=key))
        self.mixed[started.execution_id] = key
        return started.execution_id

    async def other(self, name: str, **payload: Any) -> str:
        """Start another playbook of the test."""
        key = os.urandom(8).hex()
        given = {"api": self.ledger.url, "n": key, **payload}
        started = await surely(lambda: self.clients[0].execute(f"faults/{name}", given, idempotency_key=key))
        self.others[started.execution_id] = key
        return started.execution_id

    async def status(self, execution_id: str) -> str:
        return (await surely(lambda: self.clients[0].status(execution_id))).status

    async def ended(self, *executions: str) -> dict[str, str]:
        """Wait for the named executions, or all, to end; return their statuses.

        They are stuck when none ends for a while: how long all of them take is a matter of the machine.
        """
        wanted = executions or (*self.mixed, *self.others)
        store, found = PostgresStore(self.system.database), dict[str, str]()
        try:
            async with asyncio.timeout(PATIENCE_S) as limit:
                while len(found) < len(wanted):
                    for one in [one for one in wanted if one not in found]:
                        row = await surely(lambda named=one: store.execution(named)) or {}  # type: ignore[misc]
                        if "ended_at" in row:
                            found[one] = row["status"]
                            limit.reschedule(asyncio.get_running_loop().time() + PATIENCE_S)
                    await asyncio.sleep(0.05)
        except TimeoutError:
            left = [one for one in wanted if one not in found]
            told = [await surely(lambda named=one: self.clients[0].explain(named)) for one in left[:10]]  # type: ignore[misc]
            raise AssertionError(f"{len(left)} are stuck, such as: {told}") from None
        finally:
            await store.close()
        return found

    async def leased_by(self, worker: str) -> list[str]:
        """Return the executions with work leased to a worker, from the database."""
        async with await psycopg.AsyncConnection.connect(self.system.database) as connection:
            found = await connection.execute(
                "SELECT execution_id::text FROM noetl.queue WHERE status = 'leased' AND worker_id = %s", (worker,)
            )
            return [str(row[0]) for row in await found.fetchall()]

    async def until_nothing_is_leased_by(self, worker: str) -> None:
        await until(lambda: self.leased_by(worker), lambda found: not found, f"the end of the leases of {worker}")

    async def until_asked(self, executions: Sequence[str]) -> None:
        """Wait until the slow tasks of executions are under way."""

        async def missing() -> list[str]:
            return [one for one in executions if not self.ledger.asked.get(f"/slow/{self.others[one]}/it")]

        await until(missing, lambda found: not found, "the slow tasks")

    async def until_worked_by(self, worker: str) -> None:
        """Wait until a worker is there and takes work."""

        async def ready() -> list[str]:
            rows = await surely(self.clients[0].workers)
            return [row.worker_id for row in rows if row.status == "ready"]

        await until(ready, lambda found: worker in found, f"{worker}")
        await self.register(SLOW)
        self.ledger.go.clear()
        slow = [await self.other("slow") for _ in range(12)]
        try:
            await self.until_asked(slow)
            assert await self.leased_by(worker), f"{worker} takes no work"
        finally:
            self.ledger.go.set()
        assert set((await self.ended(*slow)).values()) == {"completed"}

    async def until_event(self, executions: Sequence[str], event_type: str) -> Event:
        """Wait for an event of any of some executions."""

        async def events() -> list[Event]:
            logs = [await self.clients[1].events(one, types=(event_type,)) for one in executions]
            return [event for log in logs for event in log]

        return (await until(events, bool, event_type))[0]

    async def hold(self) -> None:
        """Wait until all have ended, and hold them to everything that must be true."""
        statuses = await self.ended()
        failed = {one: statuses[one] for one in self.mixed if statuses[one] != "completed"}
        assert not failed, f"not completed: {failed}"
        store = PostgresStore(self.system.database)
        try:
            derived = PostgresDerived(store)
            async with asyncio.timeout(PATIENCE_S):
                while await store.inbox(1):
                    await asyncio.sleep(0.02)
            rebuild, known = Rebuild(store, derived, PlanCache(store)), _HELD[self.system.database]
            for execution_id in {found for _, found in await derived.logged(0, 100_000)} - known:
                check_all(execution_id, await store.read(execution_id), await derived.rows(execution_id))
                differences = await rebuild.differences(execution_id)
                assert not differences, differences
                known.add(execution_id)
            for execution_id in self.mixed:
                events = await store.read(execution_id)
                steps = Counter(event.entity_id for event in events if event.event_type == "step.done")
                assert steps == dict.fromkeys(STEPS, 1), f"{execution_id}: {steps}"
                items = Counter(event.iteration for event in events if event.event_type == "loop.iteration.done")
                assert items == dict.fromkeys(range(ITEMS), 1), f"{execution_id}: {items}"
            violations = await PostgresAdmin(self.system.database).violations()
            assert not violations, violations
            for table in ("queue", "timer", "message"):
                async with store.database.connection() as connection:
                    left = await connection.fetch(f"SELECT * FROM {table}")
                assert not left, f"left in {table}: {left}"
        finally:
            await store.close()
        self._effects()

    async def until_done(self, count: int) -> None:
        """Wait until that many executions have sent their last requests."""

        async def done() -> list[str]:
            return [path for path in list(self.ledger.asked) if path.endswith("/meet")]

        before = len(await done())
        await until(done, lambda found: len(found) >= before + count, "executions")

    def hold_to_once(self) -> None:
        """Nothing was done again, but for the task that was refused the first time."""
        for key in self.mixed.values():
            times = {effect: len(self.ledger.asked[effect % key]) for effect in EFFECTS}
            assert times == {effect: 2 if "flaky" in effect else 1 for effect in EFFECTS}, times

    def _effects(self) -> None:
        """Everything was done, and always under the same key."""
        for key in self.mixed.values():
            for effect in EFFECTS:
                asked = self.ledger.asked.get(effect % key, [])
                assert asked, f"{effect % key} never happened"
                assert len(set(asked)) == 1, f"{effect % key} had several keys: {asked}"
                assert asked[0]


@asynccontextmanager
async def loading(system: Cluster, ledger: Ledger) -> AsyncIterator[Load]:
    """Return a load whose clients know both servers, each in another order."""
    async with Client(system.servers) as one, Client(system.servers[::-1]) as two:
        load = Load(system, ledger, (one, two))
        await load.register(CHILD, MIXED)
        yield load


@contextmanager
def told(system: Cluster, seed: int) -> Iterator[None]:
    """On a failure, print the seed, how to repeat it, and the processes' output."""
    try:
        yield
    except BaseException:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (call)")
        print(f"\nseed {seed}; run it again: python -m pytest -m '' '{test}'\n{system.logs()}")
        raise
