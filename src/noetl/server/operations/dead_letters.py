"""Replay and discard dead letters, for the API and the command line.

The work of a letter is recalled from the log of its execution. All letters are checked before any is changed; the engine
decides what a replay leads to. Tested in tests/server/api/test_dlq.py and tests/acceptance/admin/test_dlq_cli.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from noetl.dsl.grammar.kinds import Kinds
from noetl.engine.plan.patches import check, put_at
from noetl.engine.queries.recall import recalled
from noetl.engine.state.dead_letters import is_of_message
from noetl.model.errors import InvalidInput
from noetl.model.ids import message_digest
from noetl.model.letters import DISCARDED, PENDING, DeadLetter
from noetl.model.messages import Again, AnyMessage, Discard, Redrive
from noetl.ports import Audit, EventLog, IdempotencyKeys
from noetl.ports.letters import DeadLetters, LetterSelection
from noetl.server.cache.ids import KEY_MS
from noetl.server.operations.forks import submit_with_retry
from noetl.server.operations.poisoned_messages import split

if TYPE_CHECKING:
    from noetl.server.control_plane import LocalControlPlane

MOST: Final = 10_000  # letters that one request replays or discards
_PAGE: Final = 1_000
_TOGETHER: Final = 200  # letters of one execution in one commit
Note = Callable[[str, int], Audit]  # execution, number of its letters → audit entry


class Store(EventLog, DeadLetters, Protocol):
    """A log with its dead letters."""


class Ready(Struct, frozen=True):
    """Letters of one execution with their work, checked."""

    execution_id: str
    letters: tuple[DeadLetter, ...]
    work: tuple[Again, ...]


async def pending(store: DeadLetters, selection: LetterSelection) -> list[DeadLetter]:
    """Return the pending letters of a selection, at most `MOST`."""
    found: list[DeadLetter] = []
    asked = replace(selection, status=(PENDING,), limit=_PAGE)
    while len(found) < MOST:
        page = await store.letters(asked)
        found += page
        if len(page) < _PAGE:
            break
        asked = replace(asked, before=page[-1].message_id)
    return found[:MOST]


async def ready(
    store: Store, control: LocalControlPlane, letters: Iterable[DeadLetter], patch: Mapping[str, Any], kinds: Kinds
) -> list[Ready]:
    """Recall the work of letters and check the patch. Raises InvalidInput."""
    letters, messages = split(letters)
    if messages:
        fix = "`noetl dlq replay` with --server does it; here they can only be discarded."
        raise InvalidInput(
            f"Dead letter {messages[0].message_id} is a message of a subscription, which a server replays: {fix}"
        )
    made: list[Ready] = []
    for execution_id, own in _by_execution(letters).items():
        events = await store.read(execution_id)
        if not events:
            raise InvalidInput(
                f"The log of execution {execution_id} no longer exists. Its dead letters can only be discarded."
            )
        plan = await control.plan(str(events[0].payload.get("playbook", "")))
        found = recalled(events, own)
        missing = [letter.message_id for letter in own if letter.message_id not in found]
        if missing:
            raise InvalidInput(f"The log does not hold the work of dead letter {missing[0]}. It can only be discarded.")
        for letter in own if patch else ():
            if is_of_message(letter.run_id):
                raise InvalidInput(
                    f"Dead letter {letter.message_id} is a message and has nothing to patch. Replay it without a patch."
                )
            step, args = plan.step(letter.step_id), found[letter.message_id].work["args"]
            is_item = letter.loop_index is not None
            check(plan.playbook, step, letter.task, patch, kinds, args=args, is_item=is_item)
        made.append(Ready(execution_id, tuple(own), tuple(found[letter.message_id] for letter in own)))
    return made


async def replay(
    control: LocalControlPlane,
    found: Sequence[Ready],
    patch: Mapping[str, Any],
    *,
    by: str,
    name: str,
    note: Note | None = None,
) -> int:
    """Queue the work of letters again; return their number. Idempotent by `name`."""
    for one in found:
        for start in range(0, len(one.work), _TOGETHER):
            part = one.work[start : start + _TOGETHER]
            message_id = _message_id("replay", name, one.execution_id, [(again.run_id, again.index) for again in part])
            message = Redrive(message_id, part, patch, by)
            await _tell(control, one.execution_id, message, note, len(part))
    return sum(len(one.work) for one in found)


async def discard(
    control: LocalControlPlane,
    letters: Iterable[DeadLetter],
    reason: str,
    *,
    by: str,
    name: str,
    note: Note | None = None,
) -> int:
    """Close letters without their work; return their number. Idempotent by `name`."""
    letters, messages = split(letters)
    for letter in messages:
        act = None if note is None else note(letter.execution_id, 1)
        await control.close_message(letter, DISCARDED, act, by, reason)
    count = len(messages)
    for execution_id, own in _by_execution(letters).items():
        for start in range(0, len(own), _TOGETHER):
            part = tuple((one.step_id, one.run_id, one.loop_index) for one in own[start : start + _TOGETHER])
            message_id = _message_id("discard", name, execution_id, [(run_id, index) for _, run_id, index in part])
            message = Discard(message_id, part, reason, by)
            await _tell(control, execution_id, message, note, len(part))
            count += len(part)
    return count


async def _tell(
    control: LocalControlPlane, execution_id: str, message: AnyMessage, note: Note | None, count: int
) -> None:
    await submit_with_retry(control, execution_id, message, None if note is None else note(execution_id, count))


def _by_execution(letters: Iterable[DeadLetter]) -> dict[str, list[DeadLetter]]:
    found: dict[str, list[DeadLetter]] = {}
    for letter in letters:
        found.setdefault(letter.execution_id, []).append(letter)
    return found


def _message_id(verb: str, name: str, execution_id: str, letters: list[tuple[str, int | None]]) -> str:
    """Return the same id for the same letters and name, for idempotency."""
    return f"{verb}:{name}:{execution_id}:{message_digest(repr(letters))}"


async def was_applied(store: EventLog, verb: str, name: str, letter: DeadLetter) -> bool:
    """Return whether a request under this name was applied to a letter before."""
    message_id = _message_id(verb, name, letter.execution_id, [(letter.run_id, letter.loop_index)])
    digest = f"{message_digest(message_id)}."
    return any(event.event_id.startswith(digest) for event in await store.read(letter.execution_id))


async def first_letters(
    keys: IdempotencyKeys, name: str, letters: list[DeadLetter], now: int
) -> tuple[list[DeadLetter], int]:
    """Return the letters of an idempotent request, and their original number.

    A repeated request finishes what the first one left undone. Letters that failed again since then are left out.
    """
    newest = max((letter.last_seen for letter in letters), default=0)
    count = await keys.keep_key(f"{name}:count", str(len(letters)), now, now - KEY_MS)
    until = int(await keys.keep_key(f"{name}:until", str(newest), now, now - KEY_MS))
    return [letter for letter in letters if letter.last_seen <= until], int(count)


def preview(letter: DeadLetter, patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input of a replay: secrets masked, templates not rendered."""
    payload: Any = dict(letter.payload)
    for path, value in patch.items():
        payload = put_at(payload, path.split("."), value)
    return dict(payload)
