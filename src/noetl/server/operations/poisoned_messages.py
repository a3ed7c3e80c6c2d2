"""Replay dead letters of subscriptions: messages that started nothing.

No log holds them: the letter holds the message. A replay maps the message with the templates that the subscription has now,
and starts the execution whose id the letter reserved, so a repeated one starts nothing twice. Tested in
tests/server/api/triggers/test_subscriptions.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec.structs import replace

from noetl.engine.plan.patches import put_at
from noetl.model.errors import InvalidInput
from noetl.model.letters import REPLAYED, DeadLetter
from noetl.model.messages import Start
from noetl.ports import Audit, Catalog, EventLog
from noetl.ports.triggers import Message, Triggers
from noetl.server.background.subscriptions.feed import KIND
from noetl.server.background.subscriptions.poller import Render, payload_of
from noetl.server.cache.ids import is_started_by
from noetl.triggers.stored import read_spec
from noetl.triggers.subscription import SubscriptionSpec

if TYPE_CHECKING:
    from noetl.server.control_plane import LocalControlPlane

_DEEPEST: Final = 50  # keys of a path in a patch


class Store(EventLog, Catalog, Protocol):
    """A log and a catalog."""


def is_message(letter: DeadLetter) -> bool:
    """Return whether a letter is a message of a subscription."""
    return letter.tool_kind == KIND


def split(letters: Iterable[DeadLetter]) -> tuple[list[DeadLetter], list[DeadLetter]]:
    """Return the letters of executions, and those of subscriptions."""
    found: tuple[list[DeadLetter], list[DeadLetter]] = ([], [])
    for letter in letters:
        found[is_message(letter)].append(letter)
    return found


def is_patchable(path: str) -> bool:
    """Return whether a path of a patch is `data` of a message, or within it."""
    return path.split(".", maxsplit=1)[0] == "data" and path.count(".") <= _DEEPEST


def patched(letter: DeadLetter, patch: Mapping[str, Any]) -> DeadLetter:
    """Return a letter whose message has other data; whole data replace what is wrong."""
    payload = dict(letter.payload)
    for path, value in patch.items():
        payload = put_at(payload, path.split("."), value)
    if "data" in patch:
        payload.pop("problem", None)
    return replace(letter, payload=payload)


async def prepared(store: Store, triggers: Triggers, render: Render, letter: DeadLetter, most_bytes: int) -> Start:
    """Return the start of a letter's message. Raises InvalidInput."""
    trigger = await triggers.trigger(KIND, letter.step_id)
    if trigger is None:
        raise InvalidInput(
            f"The subscription {letter.step_id} no longer exists. Dead letter {letter.message_id} can only be discarded."
        )
    problem = letter.payload.get("problem", "" if "data" in letter.payload else "It was too large to keep.")
    if problem:
        raise InvalidInput(
            f"The message of dead letter {letter.message_id} has no data: {problem} Discard it, or patch its whole `data`."
        )
    playbook = await store.content_hash(trigger.path, trigger.version)
    if playbook is None:
        raise InvalidInput(f"The catalog has no `{trigger.path}`. Register it, and try again.")
    facts = dict(letter.payload)
    message = Message(str(facts.pop("id", "")), facts.pop("data"), facts)
    try:
        payload = await payload_of(read_spec(trigger.spec, SubscriptionSpec), message, render, most_bytes)
    except InvalidInput as error:
        raise InvalidInput(f"Dead letter {letter.message_id} would start nothing again: {error}") from None
    name = f"{KIND}:letter:{letter.message_id}"
    return Start(name, trigger.path, playbook, payload, tags=(f"{KIND}:{trigger.trigger_id}",))


async def restart(
    control: LocalControlPlane, store: Store, letter: DeadLetter, start: Start, act: Audit, by: str
) -> None:
    """Start the execution of a letter, and close the letter. Raises InvalidInput."""
    first = await store.read(letter.execution_id, 0, 1)
    if not first or not is_started_by(first[0], start.message_id):
        await control.submit(letter.execution_id, start, act)
    await control.close_message(letter, REPLAYED, by=by)
