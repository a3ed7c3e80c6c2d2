"""Dead letters of the local store or of a server, behind one interface.

A local store's replays are driven here until they finish, as `noetl run` drives an execution, unless another process drives it.
Tested in tests/acceptance/admin/test_dlq_cli.py and tests/server/api/test_dlq.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from noetl.cli.arguments.options import FOREVER
from noetl.cli.driver.drive import new_id
from noetl.cli.driver.outbox_delivery import deliver_outbox
from noetl.cli.runtime.driver_lock import driver_lock, lock_holder, root_of
from noetl.cli.runtime.environment import actor
from noetl.cli.runtime.store import existing, local_settings, resolve_id
from noetl.cli.runtime.target import connect, server_of
from noetl.engine.state.evolve import fold
from noetl.model.errors import InvalidInput
from noetl.model.letters import PENDING, REPLAYING, STATUSES, DeadLetter
from noetl.ports import AuditEntry, History
from noetl.ports.letters import LetterSelection
from noetl.server.operations.dead_letters import Ready, discard, pending, preview, ready, replay
from noetl.wiring.embedded import Embedded, embedded, language_kinds

if TYPE_CHECKING:
    from noetl import Client
    from noetl.settings import Settings
    from noetl.wire.letters import LetterGroup

_POLL_S: Final = 0.05
_REMOTE_POLL_S: Final = 0.5
_NO_LIMIT: Final = 2**31
_NO_MATCH: Final = "No pending dead letter matches. List them with `noetl dlq list`."


class LetterFilter(NamedTuple):
    """Which dead letters a command works on."""

    id: str | None = None
    status: tuple[str, ...] = (PENDING,)
    limit: int = 100
    group: str | None = None
    execution: str | None = None
    path: str | None = None
    step: str | None = None
    kind: str | None = None
    everything: bool = False

    def require(self, action: str) -> None:
        """Raise InvalidInput if nothing narrows the filter and `--all` is not given."""
        if self.id is None and not self.everything and not any(self.fields().values()):
            raise InvalidInput(
                f"Nothing selected to {action}. "
                "Give an ID, --group FP, --execution ID, --path, --step, --kind or --all."
            )

    def fields(self) -> dict[str, str | None]:
        return {
            "group": self.group,
            "execution_id": self.execution,
            "path": self.path,
            "step": self.step,
            "kind": self.kind,
        }

    def selection(self) -> LetterSelection:
        unknown = [status for status in self.status if status not in (*STATUSES, "all")]
        if unknown:
            raise InvalidInput(f"Unknown status {unknown[0]!r}. Use one of: {', '.join(STATUSES)}, all.")
        status = () if "all" in self.status else self.status
        return LetterSelection(status, self.execution, self.path, self.step, self.kind, self.group, limit=self.limit)


class DeadLetterQueue(Protocol):
    """Operations on dead letters."""

    async def letters(self, wanted: LetterFilter) -> Sequence[Any]: ...

    async def groups(self, wanted: LetterFilter) -> Sequence[LetterGroup]: ...

    async def letter(self, message_id: str) -> Any: ...

    async def preview(self, wanted: LetterFilter, patch: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]: ...

    async def replay(self, wanted: LetterFilter, patch: Mapping[str, Any], wait_s: float) -> tuple[int, int | None]:
        """Return how many were replayed, and how many failed again, if known."""

    async def discard(self, wanted: LetterFilter, reason: str) -> int: ...


@asynccontextmanager
async def open_queue(place: str | None) -> AsyncIterator[DeadLetterQueue]:
    """Open the dead letters of a server or of an existing local store."""
    async with select_letters(place, LetterFilter()) as (queue, _):
        yield queue


@asynccontextmanager
async def select_letters(
    place: str | None, wanted: LetterFilter
) -> AsyncIterator[tuple[DeadLetterQueue, LetterFilter]]:
    """Open the queue; resolve the execution of a filter. Raises UnknownExecution."""
    server = server_of(place)
    if server is not None:
        from noetl.client.history import RemoteHistory

        async with connect(server) as client:
            yield RemoteQueue(client), await _resolve(RemoteHistory(client), wanted)
        return
    settings = existing(local_settings(place))
    async with embedded(settings) as app:
        yield LocalQueue(settings, app), await _resolve(app.store, wanted)


async def _resolve(history: History, wanted: LetterFilter) -> LetterFilter:
    if wanted.execution is None:
        return wanted
    return wanted._replace(execution=await resolve_id(history, wanted.execution))


class LocalQueue:
    """Dead letters of the local store."""

    def __init__(self, settings: Settings, app: Embedded) -> None:
        self._settings = settings
        self._app = app
        self._store = app.store

    async def letters(self, wanted: LetterFilter) -> list[DeadLetter]:
        return await self._store.letters(wanted.selection())

    async def groups(self, wanted: LetterFilter) -> list[LetterGroup]:
        from noetl.wire.letters import LetterGroup

        return [LetterGroup(**row) for row in await self._store.letter_groups(wanted.selection())]

    async def letter(self, message_id: str) -> DeadLetter:
        found = await self._store.letter(message_id)
        if found is None:
            raise InvalidInput(f"No dead letter {message_id} in this store. List them with `noetl dlq list`.")
        return found

    async def preview(self, wanted: LetterFilter, patch: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        letters = await self._pending(wanted)
        await ready(self._store, self._app.control, letters, patch, language_kinds())
        return [(letter.message_id, preview(letter, patch)) for letter in letters]

    async def replay(self, wanted: LetterFilter, patch: Mapping[str, Any], wait_s: float) -> tuple[int, int | None]:
        replayed, failed_again = 0, 0
        all_known = True
        letters = await self._pending(wanted)
        for batch in await ready(self._store, self._app.control, letters, patch, language_kinds()):
            failed = await self._replay(batch, patch, wait_s)
            replayed += len(batch.work)
            failed_again += failed or 0
            all_known = all_known and failed is not None
        return replayed, failed_again if all_known else None

    async def _replay(self, batch: Ready, patch: Mapping[str, Any], wait_s: float) -> int | None:
        state = fold(batch.execution_id, await self._store.read(batch.execution_id))
        root = root_of(state)
        is_local = state.pool.startswith("local:")
        if is_local and lock_holder(self._settings, root) is None:
            with driver_lock(self._settings, root):
                await self._app.control.take_over(batch.execution_id)
                async with self._app.run_worker(f"local:{root}"), deliver_outbox(self._app):
                    await self._submit(batch, patch)
                    return await self._wait(batch)
        await self._submit(batch, patch)
        return await self._wait(batch) if is_local or wait_s else None

    async def _submit(self, batch: Ready, patch: Mapping[str, Any]) -> None:
        def note(execution_id: str, count: int) -> AuditEntry:
            return _audit("dlq.replay", execution_id, letters=count, patch=dict(patch))

        await replay(self._app.control, [batch], patch, by=actor(), name=new_id(), note=note)

    async def _wait(self, batch: Ready) -> int:
        own = {letter.message_id for letter in batch.letters}
        replaying = LetterSelection((REPLAYING,), batch.execution_id, limit=_NO_LIMIT)
        while own & {letter.message_id for letter in await self._store.letters(replaying)}:
            await asyncio.sleep(_POLL_S)
        waiting = await self._store.letters(LetterSelection((PENDING,), batch.execution_id, limit=_NO_LIMIT))
        return len(own & {letter.message_id for letter in waiting})

    async def discard(self, wanted: LetterFilter, reason: str) -> int:
        def note(execution_id: str, count: int) -> AuditEntry:
            return _audit("dlq.discard", execution_id, letters=count, reason=reason)

        letters = await self._pending(wanted)
        return await discard(self._app.control, letters, reason, by=actor(), name=new_id(), note=note)

    async def _pending(self, wanted: LetterFilter) -> list[DeadLetter]:
        if wanted.id is not None:
            letter = await self.letter(wanted.id)
            if letter.status != PENDING:
                raise InvalidInput(f"Dead letter {wanted.id} is {letter.status}. Only pending letters can be changed.")
            return [letter]
        found = await pending(self._store, wanted.selection())
        if not found:
            raise InvalidInput(_NO_MATCH)
        return found


def _audit(action: str, entity: str, **detail: Any) -> AuditEntry:
    from time import time

    return AuditEntry(int(time() * 1000), actor(), action, entity, detail)


class RemoteQueue:
    """Dead letters of a server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def letters(self, wanted: LetterFilter) -> Sequence[Any]:
        wanted.selection()
        return (await self._client.letters(status=wanted.status, limit=wanted.limit, **wanted.fields())).letters

    async def groups(self, wanted: LetterFilter) -> Sequence[LetterGroup]:
        wanted.selection()
        return await self._client.letter_groups(status=wanted.status, limit=wanted.limit, **wanted.fields())

    async def letter(self, message_id: str) -> Any:
        return await self._client.letter(message_id)

    async def preview(self, wanted: LetterFilter, patch: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        found = await self._replay(wanted, patch, dry_run=True)
        return [(one.message_id, one.payload) for one in found.preview]

    async def replay(self, wanted: LetterFilter, patch: Mapping[str, Any], wait_s: float) -> tuple[int, int | None]:
        found = await self._replay(wanted, patch, dry_run=False)
        if not found.count:
            raise InvalidInput(_NO_MATCH)
        try:
            async with asyncio.timeout(None if wait_s == FOREVER else wait_s):
                return found.count, await self._wait(found.letters) if wait_s else None
        except TimeoutError:
            return found.count, None

    async def _wait(self, names: Sequence[str]) -> int:
        failed_again = 0
        for name in names:
            while (letter := await self._client.letter(name)).status == REPLAYING:
                await asyncio.sleep(_REMOTE_POLL_S)
            failed_again += letter.status == PENDING
        return failed_again

    async def _replay(self, wanted: LetterFilter, patch: Mapping[str, Any], *, dry_run: bool) -> Any:
        if wanted.id is not None:
            return await self._client.replay_letter(wanted.id, patch, dry_run=dry_run)
        return await self._client.replay_letters(
            patch=patch, dry_run=dry_run, everything=wanted.everything, **wanted.fields()
        )

    async def discard(self, wanted: LetterFilter, reason: str) -> int:
        if wanted.id is not None:
            return (await self._client.discard_letter(wanted.id, reason)).count
        return (await self._client.discard_letters(reason, everything=wanted.everything, **wanted.fields())).count
