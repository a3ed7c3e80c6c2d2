"""Pool of in-memory DuckDB instances, each for the tasks of one execution.

Opening an instance takes longer than most queries. A task whose statements only read files or write tables of their own
gets an instance that another task of its execution has left: with a new connection, so no temporary table, setting,
variable or transaction is inherited, and with an empty catalog. Other tasks (`SET`, `ATTACH`, `LOAD`, secrets) and failed
ones leave no instance to others. One task at a time uses an instance, in the thread that opened it, so the sandbox is the
same. Tested in tests/tools/sql/test_duckdb_pool.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from time import monotonic
from typing import Any, Final

from noetl.ports import ToolContext
from noetl.ports.work import OwnThread

Connect = Callable[[str, bool, OwnThread], Any]  # opens a database in the thread of a task
MOST_IDLE: Final = 4
IDLE_S: Final = 10.0
_READ: Final = frozenset({"SELECT", "COPY"})
_WRITE: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE_INTO", "DROP", "ALTER"})
_CREATE: Final = re.compile(r"\s*create\s+(or\s+replace\s+)?(temp\s+|temporary\s+)?(table|view)\b")
# Functions that change an instance, that run SQL of their arguments, or that reach what is remembered about a server.
_CHANGES: Final = re.compile(r"logging|_logs|profiling|secret|external_resource|query|serialized_sql|://")
_STATE: Final = "SELECT (SELECT count(*) FROM duckdb_databases()), current_setting('enable_logging')"
_LOADED: Final = "SELECT count(*) FROM duckdb_extensions() WHERE loaded"  # a confined instance loads none
# The catalog `memory` cannot be emptied, only replaced, while another one is the default.
_EMPTY: Final = (
    "ATTACH ':memory:' AS noetl_spare", "USE noetl_spare", "DETACH memory", "ATTACH ':memory:' AS memory",
    "USE memory", "DETACH noetl_spare",
)  # fmt: skip


class Instance:
    """One in-memory instance in its own thread, and the state that it had at first."""

    def __init__(self, execution_id: str, thread: OwnThread, root: Any, held: AsyncExitStack) -> None:
        self.execution_id = execution_id
        self.thread = thread
        self.root = root
        self.idle_since = 0.0
        self.was_used = False
        self._held = held
        self._state = self._read_state()

    @staticmethod
    async def open(context: ToolContext, connect: Connect) -> Instance:
        """Open an instance; its thread and folder are the sandbox of the task."""
        async with AsyncExitStack() as held:
            thread = await held.enter_async_context(context.thread())
            root = await thread.run(connect, ":memory:", False, thread)
            kept = held.pop_all()
            try:
                found: Instance = await thread.run(Instance, context.execution_id, thread, root, kept)
            except BaseException:
                await kept.aclose()
                raise
            return found

    def reset(self, connection: Any, *, writes: bool) -> bool:
        """Close a task's connection; return whether the instance is as it was at first."""
        self.was_used = True
        connection.close()
        if self._read_state() != self._state:
            return False
        if writes:
            with self.root.cursor() as cursor:
                for statement in _EMPTY:
                    cursor.execute(statement)
        return True

    async def close(self) -> None:
        try:
            await self.thread.run(self.root.close)
        finally:
            await self._held.aclose()

    def _read_state(self) -> Any:
        walls = self.thread.walls
        reads = (_STATE, _LOADED) if walls.is_open and walls.has_network else (_STATE,)
        with self.root.cursor() as cursor:
            return [cursor.execute(query).fetchone() for query in reads]


class DuckdbPool:
    """Idle instances: at most `MOST_IDLE`, each for at most `idle_s`."""

    def __init__(self, connect: Connect, idle_s: float = IDLE_S) -> None:
        self._connect = connect
        self._idle: list[Instance] = []
        self._idle_s = idle_s
        self._closing: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def idle(self) -> list[Instance]:
        """The idle instances, the longest unused first."""
        return list(self._idle)

    @asynccontextmanager
    async def connection(self, context: ToolContext, texts: Sequence[str]) -> AsyncIterator[tuple[Any, OwnThread]]:
        """Yield a connection for a task with these statements, and its thread."""
        instance = self._take(context.execution_id) or await Instance.open(context, self._connect)
        is_kept = False
        try:
            kinds = await instance.thread.run(_kinds, instance.root, texts)
            if kinds is None and instance.was_used:
                self._put_back(instance)
                instance = await Instance.open(context, self._connect)
            own = instance.root if kinds is None else await instance.thread.run(instance.root.cursor)
            yield own, instance.thread
            if kinds is not None:
                is_kept = await self._reset(instance, own, writes=not kinds <= _READ)
        finally:
            if is_kept:
                self._put_back(instance)
            else:
                await instance.close()

    @staticmethod
    async def _reset(instance: Instance, connection: Any, *, writes: bool) -> bool:
        """Return whether an instance can serve another task, which it is ready for."""
        reset = partial(instance.reset, connection, writes=writes)
        try:
            return bool(await instance.thread.run(reset)) and instance.thread.can_serve()
        except Exception:  # noqa: BLE001 - the task has its result; an instance that cannot be reset is closed
            return False

    def _take(self, execution_id: str) -> Instance | None:
        for one in [one for one in self._idle if one.execution_id == execution_id]:
            self._idle.remove(one)
            if one.thread.can_serve():
                return one
            self._close(one)
        return None

    def _put_back(self, instance: Instance) -> None:
        """Keep an instance for the next task; the longest unused one is closed."""
        instance.idle_since = monotonic()
        self._idle.append(instance)
        if self._is_closed or len(self._idle) > MOST_IDLE:
            self._close(self._idle.pop(0))
        self._watch()

    def _close(self, instance: Instance) -> None:
        closing = asyncio.get_running_loop().create_task(instance.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _watch(self) -> None:
        if self._timer is None and self._idle and not self._is_closed:
            due = max(0.0, self._idle[0].idle_since + self._idle_s - monotonic())
            self._timer = asyncio.get_running_loop().call_later(due, self._expire)

    def _expire(self) -> None:
        self._timer = None
        while self._idle and self._idle[0].idle_since + self._idle_s <= monotonic():
            self._close(self._idle.pop(0))
        self._watch()

    async def close(self) -> None:
        """Close idle instances; those in use are closed when they are put back."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._idle:
            self._close(self._idle.pop())
        await asyncio.gather(*self._closing, return_exceptions=True)


def _kinds(parser: Any, texts: Sequence[str]) -> frozenset[str] | None:
    """Return the kinds of the statements; None if one may change an instance."""
    import duckdb

    if any(_CHANGES.search(text.lower()) for text in texts):
        return None
    found = set()
    try:
        for statement in (one for text in texts for one in parser.extract_statements(text)):
            kind = statement.type.name
            if kind not in _READ | _WRITE and not (kind == "CREATE" and _CREATE.match(statement.query.lower())):
                return None
            found.add(kind)
    except (duckdb.Error, ValueError):  # an instance of its own reports it; ValueError: a kind without a name
        return None
    return frozenset(found)
