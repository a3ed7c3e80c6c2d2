"""Where `noetl dlq` finds dead letters and acts on them: in the store of this machine, or at a server.

In a store, a replay is driven here until it is done, as `noetl run` drives an execution; where somebody else drives it, or
where workers of a server do, it is theirs. Tested in tests/acceptance/test_dlq_cli.py and tests/server/test_dead_letters.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from noetl.cli.common.store import driving, existing, holder_of, local_settings, root_of
from noetl.cli.common.target import connected, server_of
from noetl.cli.driver.drive import new_id
from noetl.cli.driver.outbox_delivery import delivering
from noetl.engine.evolve import fold
from noetl.model.errors import InvalidInput
from noetl.model.letters import PENDING, REPLAYING, STATUSES, DeadLetter
from noetl.ports import AuditEntry
from noetl.ports.letters import LetterSelection
from noetl.server.dead_letters import Ready, discard, pending, preview, ready, replay
from noetl.wiring import Embedded, embedded, language_kinds

if TYPE_CHECKING:
    from noetl import Client
    from noetl.settings import Settings
    from noetl.wire.letters import LetterGroup

_LOOK_S: Final = 0.05
_LOOK_THERE_S: Final = 0.5


class Chosen(NamedTuple):
    """Which letters a command means."""

    id: str | None
    status: tuple[str, ...]
    limit: int
    group: str | None
    execution: str | None
    path: str | None
    step: str | None
    kind: str | None
    everything: bool

    def the_id(self) -> str:
        """Give the letter that is named. Raises InvalidInput where none is."""
        if self.id is None:
            raise InvalidInput("name a letter; `noetl dlq list` gives their ids.")
        return self.id

    def check(self, action: str) -> None:
        """Refuse to act where nothing says on what. Raises InvalidInput."""
        if self.id is None and not self.everything and not any(self.asked().values()):
            raise InvalidInput(
                f"say what to {action}: an ID, `--group FP`, `--execution ID`, `--path`, `--step`, `--kind` or `--all`."
            )

    def asked(self) -> dict[str, str | None]:
        return {
            "group": self.group,
            "execution_id": self.execution,
            "path": self.path,
            "step": self.step,
            "kind": self.kind,
        }

    def selection(self) -> LetterSelection:
        wrong = [status for status in self.status if status not in (*STATUSES, "all")]
        if wrong:
            raise InvalidInput(f"there is no status {wrong[0]!r}; there are {', '.join(STATUSES)} and all.")
        status = () if "all" in self.status else self.status
        return LetterSelection(status, self.execution, self.path, self.step, self.kind, self.group, limit=self.limit)


class Desk(Protocol):
    """Where dead letters are worked with."""

    async def letters(self, chosen: Chosen) -> Sequence[Any]: ...

    async def groups(self, chosen: Chosen) -> Sequence[LetterGroup]: ...

    async def letter(self, message_id: str) -> Any: ...

    async def preview(self, chosen: Chosen, patch: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]: ...

    async def replay(self, chosen: Chosen, patch: Mapping[str, Any], wait_s: float) -> tuple[int, int | None]:
        """Replay; gives how many, and how many of them failed again where that is known."""

    async def discard(self, chosen: Chosen, reason: str) -> int: ...


@asynccontextmanager
async def desk(place: str | None) -> AsyncIterator[Desk]:
    """Give where a command works with dead letters."""
    server = server_of(place)
    if server is not None:
        async with connected(server) as client:
            yield There(client)
        return
    settings = existing(local_settings(place))
    async with embedded(settings) as app:
        yield Here(settings, app)


class Here:
    """The store of this machine."""

    def __init__(self, settings: Settings, app: Embedded) -> None:
        self._settings = settings
        self._app = app
        self._store = app.store

    async def letters(self, chosen: Chosen) -> list[DeadLetter]:
        return await self._store.letters(chosen.selection())

    async def groups(self, chosen: Chosen) -> list[LetterGroup]:
        from noetl.wire.letters import LetterGroup

        return [LetterGroup(**row) for row in await self._store.letter_groups(chosen.selection())]

    async def letter(self, message_id: str) -> DeadLetter:
        found = await self._store.letter(message_id)
        if found is None:
            raise InvalidInput(f"there is no dead letter {message_id} in this store; `noetl dlq list` lists them.")
        return found

    async def preview(self, chosen: Chosen, patch: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        letters = await self._meant(chosen)
        await ready(self._store, self._app.control, letters, patch, language_kinds())
        return [(letter.message_id, preview(letter, patch)) for letter in letters]

    async def replay(self, chosen: Chosen, patch: Mapping[str, Any], wait_s: float) -> tuple[int, int | None]:
        count, returned = 0, 0
        known = True
        letters = await self._meant(chosen)
        for one in await ready(self._store, self._app.control, letters, patch, language_kinds()):
            done = await self._replay(one, patch, wait_s)
            count += len(one.work)
            returned += done or 0
            known = known and done is not None
        return count, returned if known else None

    async def _replay(self, one: Ready, patch: Mapping[str, Any], wait_s: float) -> int | None:
        state = fold(one.execution_id, await self._store.read(one.execution_id))
        root = root_of(state)
        is_local = state.pool.startswith("local:")
        if is_local and holder_of(self._settings, root) is None:
            with driving(self._settings, root):
                await self._app.control.take_over(one.execution_id)
                async with self._app.working(f"local:{root}"), delivering(self._app):
                    await self._tell(one, patch)
                    return await self._settled(one)
        await self._tell(one, patch)
        return await self._settled(one) if is_local or wait_s else None

    async def _tell(self, one: Ready, patch: Mapping[str, Any]) -> None:
        def note(execution_id: str, count: int) -> AuditEntry:
            return _entry("dlq.replay", execution_id, letters=count, patch=dict(patch))

        await replay(self._app.control, [one], patch, by=_who(), name=new_id(), note=note)

    async def _settled(self, one: Ready) -> int:
        """Wait until no replay of these letters is under way; gives how many wait again."""
        own = {letter.message_id for letter in one.letters}
        asked = LetterSelection((REPLAYING,), one.execution_id, limit=2**31)
        while own & {letter.message_id for letter in await self._store.letters(asked)}:
            await asyncio.sleep(_LOOK_S)
        waiting = await self._store.letters(LetterSelection((PENDING,), one.execution_id, limit=2**31))
        return len(own & {letter.message_id for letter in waiting})

    async def discard(self, chosen: Chosen, reason: str) -> int:
        def note(execution_id: str, count: int) -> AuditEntry:
            return _entry("dlq.discard", execution_id, letters=count, reason=reason)

        letters = await self._meant(chosen)
        return await discard(self._app.control, letters, reason, by=_who(), name=new_id(), note=note)

    async def _meant(self, chosen: Chosen) -> list[DeadLetter]:
        if chosen.id is not None:
            letter = await self.letter(chosen.id)
            if letter.status != PENDING:
                raise InvalidInput(f"dead letter {chosen.id} is {letter.status}, and only a pending one waits.")
            return [letter]
        found = await pending(self._store, chosen.selection())
        if not found:
            raise InvalidInput("no dead letter that waits fits this; `noetl dlq list` lists them.")
        return found


def _who() -> str:
    from getpass import getuser

    try:
        return f"cli:{getuser()}"
    except (KeyError, OSError):  # a user without a name
        return "cli"


def _entry(action: str, entity: str, **detail: Any) -> AuditEntry:
    from time import time

    return AuditEntry(int(time() * 1000), _who(), action, entity, detail)


class There:
    """A server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def letters(self, chosen: Chosen) -> Sequence[Any]:
        chosen.selection()
        return (await self._client.letters(status=chosen.status, limit=chosen.limit, **chosen.asked())).letters

    async def groups(self, chosen: Chosen) -> Sequence[LetterGroup]:
        chosen.selection()
        return await self._client.letter_groups(status=chosen.status, limit=chosen.limit, **chosen.asked())

    async def letter(self, message_id: str) -> Any:
        return await self._client.letter(message_id)

    async def preview(self, chosen: Chosen, patch: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
        found = await self._replayed(chosen, patch, dry_run=True)
        return [(one.message_id, one.payload) for one in found.preview]

    async def replay(self, chosen: Chosen, patch: Mapping[str, Any], wait_s: float) -> tuple[int, int | None]:
        found = await self._replayed(chosen, patch, dry_run=False)
        if not found.count:
            raise InvalidInput("no dead letter that waits fits this; `noetl dlq list` lists them.")
        try:
            async with asyncio.timeout(None if wait_s == float("inf") else wait_s):
                return found.count, await self._settled(found.letters) if wait_s else None
        except TimeoutError:
            return found.count, None

    async def _settled(self, names: Sequence[str]) -> int:
        """Wait until no replay of these letters is under way; gives how many wait again."""
        returned = 0
        for name in names:
            while (letter := await self._client.letter(name)).status == REPLAYING:
                await asyncio.sleep(_LOOK_THERE_S)
            returned += letter.status == PENDING
        return returned

    async def _replayed(self, chosen: Chosen, patch: Mapping[str, Any], *, dry_run: bool) -> Any:
        if chosen.id is not None:
            return await self._client.replay_letter(chosen.id, patch, dry_run=dry_run)
        return await self._client.replay_letters(
            patch=patch, dry_run=dry_run, everything=chosen.everything, **chosen.asked()
        )

    async def discard(self, chosen: Chosen, reason: str) -> int:
        if chosen.id is not None:
            return (await self._client.discard_letter(chosen.id, reason)).count
        return (await self._client.discard_letters(reason, everything=chosen.everything, **chosen.asked())).count
